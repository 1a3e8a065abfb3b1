"""`te.softmax`: along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irkit.dialects import te
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.weights import Array


class Softmax(TensorOpModel[te.SoftmaxOp]):
    """Sums run in the order of the columns."""

    family = "softmax"

    def kind(self, op: te.SoftmaxOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.SoftmaxOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        (x,) = operands
        power = np.exp(x - x.max(axis=-1, keepdims=True))
        total = np.zeros(x.shape[:-1], x.dtype)
        for column in range(x.shape[-1]):
            total = total + power[..., column]
        return [power / total[..., None]]

    def operand_boxes(
        self, op: te.SoftmaxOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return [(*box[:-1], extents.whole(op.x)[-1])]
