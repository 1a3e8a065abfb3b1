"""Elementwise ops, with NumPy broadcasting where there are several operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerType, StringAttr, TensorType, i1
from xdsl.ir import TypeAttribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.graph.base import GraphOp, Props, broadcast_shapes, fail, same_element
from irkit.dialects.types import Tensor, is_float, tensor


class UnaryOp(GraphOp):
    """One operand, same type out."""

    x = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"
    FLOAT_ONLY: ClassVar[bool] = True

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        if cls.FLOAT_ONLY and not is_float(x.element_type):
            raise fail(cls, "a floating-point operand", x)
        return [x]


class BinaryOp(GraphOp):
    """Two operands of one element type, broadcast together."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [tensor(same_element(cls, operands), broadcast_shapes(cls, operands))]


class BitwiseOp(BinaryOp):
    """Two operands of integers or i1."""

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        if not isinstance(same_element(cls, operands), IntegerType):
            raise fail(cls, "operands of integers or i1", operands[0])
        return super().infer(operands, props)


@irdl_op_definition
class AbsOp(UnaryOp):
    """Absolute value.

    ```mlir
    %y = graph.abs %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.abs"
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class AddOp(BinaryOp):
    """lhs + rhs.

    ```mlir
    %y = graph.add %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.add"


@irdl_op_definition
class AndOp(BitwiseOp):
    """Bits that are set in both; of i1, logical and.

    ```mlir
    %y = graph.and %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.and"


@irdl_op_definition
class CastOp(GraphOp):
    """Convert elements to type `to`: floats round to nearest even, floats to integers truncate.

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
        return [tensor(props["to"], operands[0].get_shape())]


@irdl_op_definition
class ClipOp(UnaryOp):
    """Limit elements to [min, max]; NaN stays NaN.

    ```mlir
    %y = graph.clip %x {min = 0.0 : f64, max = 6.0 : f64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.clip"
    min = prop_def(FloatAttr[Float64Type])
    max = prop_def(FloatAttr[Float64Type])


PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


@irdl_op_definition
class CompareOp(BinaryOp):
    """Compare elements; a comparison with NaN is false, except `ne`.

    ```mlir
    %y = graph.compare %x, %b {predicate = "le"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.compare"
    predicate = prop_def(StringAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        predicate = props["predicate"]
        assert isinstance(predicate, StringAttr)
        if predicate.data not in PREDICATES:
            raise fail(cls, f"a predicate among {', '.join(PREDICATES)}", f"'{predicate.data}'")
        same_element(cls, operands)
        return [tensor(i1, broadcast_shapes(cls, operands))]


@irdl_op_definition
class DivOp(BinaryOp):
    """lhs / rhs; integers truncate towards zero.

    ```mlir
    %y = graph.div %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.div"


@irdl_op_definition
class ErfOp(UnaryOp):
    """Gauss error function.

    ```mlir
    %y = graph.erf %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.erf"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the power of each element.

    ```mlir
    %y = graph.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.exp"


@irdl_op_definition
class FloorOp(UnaryOp):
    """Largest integer not above each element.

    ```mlir
    %y = graph.floor %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.floor"


@irdl_op_definition
class IsNanOp(UnaryOp):
    """Whether each element is NaN.

    ```mlir
    %y = graph.is_nan %x : (tensor<?x8xf32>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.is_nan"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = super().infer(operands, props)
        return [tensor(i1, x.get_shape())]


@irdl_op_definition
class LogOp(UnaryOp):
    """Natural logarithm.

    ```mlir
    %y = graph.log %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.log"


@irdl_op_definition
class MaxOp(BinaryOp):
    """The larger of two elements; NaN if either is.

    ```mlir
    %y = graph.max %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.max"


@irdl_op_definition
class MinOp(BinaryOp):
    """The smaller of two elements; NaN if either is.

    ```mlir
    %y = graph.min %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.min"


@irdl_op_definition
class MulOp(BinaryOp):
    """lhs * rhs.

    ```mlir
    %y = graph.mul %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.mul"


@irdl_op_definition
class NegOp(UnaryOp):
    """Negation.

    ```mlir
    %y = graph.neg %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.neg"
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class OrOp(BitwiseOp):
    """Bits that are set in either; of i1, logical or.

    ```mlir
    %y = graph.or %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.or"


@irdl_op_definition
class PowOp(BinaryOp):
    """lhs to the power of rhs, floating point.

    ```mlir
    %y = graph.pow %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.pow"


@irdl_op_definition
class ReluOp(UnaryOp):
    """max(x, 0); NaN stays NaN.

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
    """Square root.

    ```mlir
    %y = graph.sqrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sqrt"


@irdl_op_definition
class SubOp(BinaryOp):
    """lhs - rhs.

    ```mlir
    %y = graph.sub %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sub"


@irdl_op_definition
class TanhOp(UnaryOp):
    """Hyperbolic tangent.

    ```mlir
    %y = graph.tanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.tanh"


@irdl_op_definition
class WhereOp(GraphOp):
    """`x` where the condition holds, else `y`.

    ```mlir
    %z = graph.where %p, %x, %b : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.where"
    condition = operand_def(TensorType)
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    z = result_def(TensorType)
    assembly_format = "$condition `,` $x `,` $y attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        condition, x, y = operands
        if condition.element_type != i1:
            raise fail(cls, "a condition of i1", condition)
        return [tensor(same_element(cls, (x, y)), broadcast_shapes(cls, operands))]


OPS: list[type[GraphOp]] = [
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    ClipOp,
    CompareOp,
    DivOp,
    ErfOp,
    ExpOp,
    FloorOp,
    IsNanOp,
    LogOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    PowOp,
    ReluOp,
    SigmoidOp,
    SqrtOp,
    SubOp,
    TanhOp,
    WhereOp,
]
