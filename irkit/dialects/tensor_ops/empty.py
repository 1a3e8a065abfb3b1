"""`tensor.empty` and `tensor.dim`: destinations, and how many rows they have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from irkit.bfloat16 import is_floating
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
from irkit.errors import UnsupportedError
from irkit.weights import Array


class Empty(TensorOpModel[tensor.EmptyOp]):
    """A shape. Its elements have no value: for the interpreter NaN, or a number that nobody wants."""

    def kind(self, op: tensor.EmptyOp) -> Kind:
        return Kind.FREE

    def evaluate(
        self, op: tensor.EmptyOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        t = tensor_type(op.tensor)
        shape, dtype = completed(t.get_shape(), operands), numpy_dtype(t.element_type)
        if is_floating(dtype):
            return [np.full(shape, np.nan, dtype)]
        return [np.full(shape, True if dtype.kind == "b" else np.iinfo(dtype).max - 85, dtype)]

    def operand_boxes(
        self, op: tensor.EmptyOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return [None] * len(op.operands)

    def element(
        self, op: tensor.EmptyOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        raise UnsupportedError(f"an element of '{op.name}', which has no value")


class Dim(TensorOpModel[tensor.DimOp]):
    """Reads a shape, and no element."""

    def kind(self, op: tensor.DimOp) -> Kind:
        return Kind.FREE

    def evaluate(
        self, op: tensor.DimOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        source, number = operands
        return [np.array(source.shape[int(number)])]

    def operand_boxes(
        self, op: tensor.DimOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return [None] * len(op.operands)

    def element(
        self, op: tensor.DimOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        raise UnsupportedError(f"an element of '{op.name}', which is no tensor")
