"""`te.gemvt`: a matrix times a column, and a row times the matrix, part of rows by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.weights import Array


class Gemvt(TensorOpModel[te.GemvtOp]):
    """A row of the result needs the rows of a part."""

    family = "gemvt"

    def kind(self, op: te.GemvtOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.GemvtOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        a, x, *row = operands
        t = tensor_type(op.y)
        found = np.zeros(t.get_shape(), numpy_dtype(t.element_type))
        for part in range(op.count):
            mine = slice(op.first(part), op.first(part + 1))
            z = a[mine] @ x
            found[part, : len(z)] = z
            found[part, op.height :] = (row[0][mine] if row else z) @ a[mine]
        return [found]

    def operand_boxes(
        self, op: te.GemvtOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        (first, last), _ = box
        mine = op.first(first), op.first(last)
        boxes: list[Box | None] = [(mine, (0, op.columns)), extents.whole(op.x)]
        return [*boxes, (mine,)] if op.r is not None else boxes

    def why_no_prologue(self, op: te.GemvtOp, producer: Operation, cheap: bool) -> str | None:
        return None if cheap else f"'{op.name}' reads its operands more than once"
