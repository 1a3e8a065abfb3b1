"""Elementwise ops, with NumPy broadcasting where there are several operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import Float64Type, FloatAttr, TensorType
from xdsl.ir import TypeAttribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.element_sets import ALL, FLOATS, NUMBERS, SINGLES, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, broadcast_shapes, fail, same_element
from irkit.dialects.types import Tensor, tensor


class UnaryOp(GraphOp):
    """One operand, same type out."""

    x = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [operands[0]]


class BinaryOp(GraphOp):
    """Two operands of one element type, broadcast together."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [tensor(same_element(cls, operands), broadcast_shapes(cls, operands))]


@irdl_op_definition
class AbsOp(UnaryOp):
    """Absolute value; of the least signed integer, that integer (it wraps), of -0.0, 0.0.

    ```mlir
    %y = graph.abs %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.abs"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class AddOp(BinaryOp):
    """lhs + rhs; integers wrap, of i1 logical or.

    ```mlir
    %y = graph.add %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.add"


@irdl_op_definition
class CastOp(GraphOp):
    """Convert elements to type `to`.

    To a float: rounded to nearest even, too large is infinite; true is 1. To i1: whether it is not
    0, so NaN is true. Between integers: the low bits, extended by the sign of a signed one. Float to
    integer: truncated to a 64-bit integer, of which a narrower type keeps the low bits. There NaN
    is 0, and what is out of range of i64 the nearest i64; ui64 has its own upper half too.

    ```mlir
    %y = graph.cast %x {to = f32} : (tensor<?x8xf64>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.cast"
    x = operand_def(TensorType)
    to = prop_def(TypeAttribute)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        to = props["to"]
        if to not in ALL:
            raise fail(cls, f"to of {ALL.text}", to)
        return [tensor(to, operands[0].get_shape())]


@irdl_op_definition
class ClipOp(UnaryOp):
    """`min` where x is less, and then `max` where that is larger; NaN stays NaN, a zero its sign.

    The limits are rounded to the element type. Where min is larger than max, all is max.

    ```mlir
    %y = graph.clip %x {min = 0.0 : f64, max = 6.0 : f64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.clip"
    min = prop_def(FloatAttr[Float64Type])
    max = prop_def(FloatAttr[Float64Type])


@irdl_op_definition
class DivOp(BinaryOp):
    """lhs / rhs, of floats as IEEE 754 has it.

    Integers truncate towards zero; x / 0 is 0, and the least integer / -1 is itself (it wraps).

    ```mlir
    %y = graph.div %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.div"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class ErfOp(UnaryOp):
    """Gauss error function, within a few units in the last place.

    ```mlir
    %y = graph.erf %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.erf"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the power of each element, within a few units in the last place.

    ```mlir
    %y = graph.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.exp"


@irdl_op_definition
class FloorOp(UnaryOp):
    """Largest integer not above each element; -0.0, infinities and NaN stay.

    ```mlir
    %y = graph.floor %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.floor"


@irdl_op_definition
class FmaOp(GraphOp):
    """x * y + z, rounded once.

    ```mlir
    %w = graph.fma %x, %x, %b : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.fma"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (SINGLES,)
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    z = operand_def(TensorType)
    w = result_def(TensorType)
    assembly_format = "$x `,` $y `,` $z attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [tensor(same_element(cls, operands), broadcast_shapes(cls, operands))]


@irdl_op_definition
class LogOp(UnaryOp):
    """Natural logarithm: -inf of both zeros, NaN below.

    ```mlir
    %y = graph.log %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.log"


@irdl_op_definition
class MaxOp(BinaryOp):
    """The larger of two elements; NaN if either is. Of two zeros the second, of i1 logical or.

    ```mlir
    %y = graph.max %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.max"


@irdl_op_definition
class MinOp(BinaryOp):
    """The smaller of two elements; NaN if either is. Of two zeros the second, of i1 logical and.

    ```mlir
    %y = graph.min %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.min"


@irdl_op_definition
class MulOp(BinaryOp):
    """lhs * rhs; integers wrap, of i1 logical and.

    ```mlir
    %y = graph.mul %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.mul"


@irdl_op_definition
class NegOp(UnaryOp):
    """Negation; integers wrap.

    ```mlir
    %y = graph.neg %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.neg"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class PowOp(BinaryOp):
    """lhs to the power of rhs.

    Floats as C's `pow`: x^0 and 1^y are 1 even of NaN, a negative number to a power that is no
    integer is NaN. Integers wrap; to a negative power 1 is 1, -1 is 1 or -1, and all others are 0.

    ```mlir
    %y = graph.pow %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.pow"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class ReluOp(UnaryOp):
    """max(x, 0); NaN stays NaN, -0.0 becomes 0.0.

    ```mlir
    %y = graph.relu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.relu"


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """1 / (1 + exp(-x)).

    ```mlir
    %y = graph.sigmoid %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sigmoid"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """Square root, correctly rounded: -0.0 of -0.0, NaN below.

    ```mlir
    %y = graph.sqrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sqrt"


@irdl_op_definition
class SubOp(BinaryOp):
    """lhs - rhs; integers wrap.

    ```mlir
    %y = graph.sub %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sub"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class TanhOp(UnaryOp):
    """Hyperbolic tangent.

    ```mlir
    %y = graph.tanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.tanh"


OPS: list[type[GraphOp]] = [
    AbsOp,
    AddOp,
    CastOp,
    ClipOp,
    DivOp,
    ErfOp,
    ExpOp,
    FloorOp,
    FmaOp,
    LogOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    PowOp,
    ReluOp,
    SigmoidOp,
    SqrtOp,
    SubOp,
    TanhOp,
]
