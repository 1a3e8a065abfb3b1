"""`tensor.cast`: a tensor of a type that says more or less of its shape."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor

from irkit.dialects.tensor_ops.interface import Interpreter, Kind, TensorOpModel
from irkit.weights import Array


class Cast(TensorOpModel[tensor.CastOp]):
    """It stands at no level of irkit's; modules of others are interpreted."""

    def kind(self, op: tensor.CastOp) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: tensor.CastOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return operands
