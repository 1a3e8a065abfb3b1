"""What families have in common whose root makes each row of one operand's row, along the last dimension."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.registry import through_reshapes
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


def stored_rows(root: Root, x: SSAValue) -> BlockArgument | None:
    """The operand that holds x, an operand of the root, row behind row; None if x is computed."""
    source = through_reshapes(x)
    same = tensor_type(source).element_type == tensor_type(x).element_type
    return source if same and isinstance(source, BlockArgument) else None


def stores_alone(root: Root) -> int | None:
    """The number of the pointer to the one result, where that is the root's; None if what is stored is
    computed."""
    if root.op is None or root.body is None or root.body.last_op is None:
        return None
    results = list(root.body.last_op.operands)
    return len(root.body.args) if results == [root.op.results[0]] else None


def rows_in_memory(root: Root, x: SSAValue) -> tuple[BlockArgument, int] | None:
    """(the operand that holds x, the number of the pointer to the result), both row behind row; None if x or
    what is stored is computed."""
    source, target = stored_rows(root, x), stores_alone(root)
    return None if source is None or target is None else (source, target)
