"""What families have in common whose root makes each row of one operand's row, along the last dimension."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.family import Family, cuts_rows, leading_parts, of_floats
from irkit.rkernels.rkernel import Parameters


class WholeRows(Family):
    """Takes roots of class `op`, which messages call `called`; their rows stay whole."""

    op: type[Operation]
    called: str

    def refuses(self, root: Root) -> str | None:
        """Another root, or one that is not of floats."""
        if not isinstance(root.op, self.op):
            return f"its root is no {self.called}"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Rows stay whole."""
        return leading_parts(root, tasks, whole_rows=True)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Rows stay whole."""
        return cuts_rows(root, grid)


def row_bytes(root: Root, parameters: Parameters) -> int:
    """Scratch of an rKernel that keeps one row there."""
    assert root.value is not None
    t = tensor_type(root.value)
    return t.get_shape()[-1] * numpy_dtype(t.element_type).itemsize
