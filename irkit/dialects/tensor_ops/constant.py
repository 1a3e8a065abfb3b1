"""`arith.constant`: a number, or a tensor of weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.weights import Array


def _is_splat(op: arith.ConstantOp) -> bool:
    return isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat()


class Constant(TensorOpModel[arith.ConstantOp]):
    """Scalars and tensors of one value are written where they are used; others are stored."""

    def kind(self, op: arith.ConstantOp) -> Kind:
        stored = isinstance(op.result.type, TensorType) and not _is_splat(op)
        return Kind.STORED if stored else Kind.FREE

    def evaluate(
        self, op: arith.ConstantOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        if not isinstance(op.result.type, TensorType):
            return [interpreter.scalar(op, operands)]
        array = constant_array(op.result, interpreter.weights)
        if array is None:
            raise InvalidModelError(f"the weights hold no bytes for {op.value}")
        return [array]

    def operand_boxes(
        self, op: arith.ConstantOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return []

    def element(
        self, op: arith.ConstantOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        if not isinstance(op.value, DenseIntOrFPElementsAttr) or not op.value.is_splat():
            raise UnsupportedError(f"emission of constant {result.type} inside an rOperator")
        splat = op.value.get_values()[0]
        assert not isinstance(splat, tuple)  # complex numbers have no element type here
        return printer.name(printer.number(splat, tensor_type(result).element_type))
