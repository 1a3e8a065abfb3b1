"""`linalg.fill` and `tensor.splat`: one value everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irkit.dialects.tensor_ops.dynamic import completed
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.weights import Array


class Fill(TensorOpModel[linalg.FillOp]):
    """The value is a function of constants."""

    def kind(self, op: linalg.FillOp) -> Kind:
        return Kind.FREE

    def evaluate(
        self, op: linalg.FillOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        value, out = operands
        return [np.full(out.shape, value, out.dtype)]

    def operand_boxes(
        self, op: linalg.FillOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return [None] * len(op.operands)

    def element(
        self, op: linalg.FillOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        return printer.scalar(op.inputs[0])


class Splat(TensorOpModel[tensor.SplatOp]):
    """It stands at no level of irkit's; modules of others are interpreted."""

    def kind(self, op: tensor.SplatOp) -> Kind:
        return Kind.FREE

    def evaluate(
        self, op: tensor.SplatOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        t = tensor_type(op.result)
        value, *sizes = operands
        return [np.full(completed(t.get_shape(), sizes), value, numpy_dtype(t.element_type))]
