"""Comparisons, logic and choice, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, TensorType, i1
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.element_sets import ALL, BOOLEANS, INTEGERS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.inference import Props, broadcast_shapes, fail, same_element
from irkit.dialects.types import Tensor, tensor

PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


class BitwiseOp(BinaryOp):
    """Two operands of integers or i1."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (BOOLEANS | INTEGERS,)


@irdl_op_definition
class AndOp(BitwiseOp):
    """Bits that are set in both; of i1, logical and.

    ```mlir
    %y = graph.and %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.and"


@irdl_op_definition
class CompareOp(BinaryOp):
    """Compare elements; a comparison with NaN is false, except `ne`. -0.0 equals 0.0, false < true.

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
class OrOp(BitwiseOp):
    """Bits that are set in either; of i1, logical or.

    ```mlir
    %y = graph.or %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.or"


@irdl_op_definition
class WhereOp(GraphOp):
    """`x` where the condition holds, else `y`.

    ```mlir
    %z = graph.where %p, %x, %b : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.where"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (BOOLEANS, ALL)
    condition = operand_def(TensorType)
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    z = result_def(TensorType)
    assembly_format = "$condition `,` $x `,` $y attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        _, x, y = operands
        return [tensor(same_element(cls, (x, y)), broadcast_shapes(cls, operands))]


OPS: list[type[GraphOp]] = [AndOp, CompareOp, IsNanOp, OrOp, WhereOp]
