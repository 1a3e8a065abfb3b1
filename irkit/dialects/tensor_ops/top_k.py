"""`te.top_k`: the first of a row in order, along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import tensor_type
from irkit.weights import Array


class TopK(TensorOpModel[te.TopKOp]):
    """Elements are read more than once, in any order."""

    family = "top_k"

    def kind(self, op: te.TopKOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.TopKOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        (x,), last = operands, operands[0].shape[-1] - 1
        # NumPy's stable sort puts NaN last; mirrored, equal elements keep their order from the other end.
        if op.largest.value.data:
            order = last - np.flip(np.argsort(np.flip(x, -1), axis=-1, kind="stable"), -1)
        else:
            order = np.argsort(x, axis=-1, kind="stable")
        return [order[..., : op.k.value.data].astype(np.int64)]

    def operand_boxes(
        self, op: te.TopKOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return [(*box[:-1], extents.whole(op.x)[-1])]

    def why_no_prologue(self, op: te.TopKOp, producer: Operation, cheap: bool) -> str | None:
        return None if cheap else f"'{op.name}' reads its operand more than once"

    def root(self, heavy: Sequence[Operation]) -> Root:
        root = super().root(heavy)
        (op,) = heavy
        extent = tensor_type(op.operands[0]).get_shape()[-1]
        return Root(root.family, op, root.parallel, (extent,))
