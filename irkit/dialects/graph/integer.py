"""Elementwise ops of integers and booleans: bits, shifts, remainders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import i1
from xdsl.irdl import irdl_op_definition

from irkit.dialects.graph.base import GraphOp, Props, fail
from irkit.dialects.graph.elementwise import BinaryOp, BitwiseOp, UnaryOp
from irkit.dialects.types import Tensor, is_integer


def integers(op: type[GraphOp], operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """`operands`, which must be of integers."""
    for t in operands:
        if not is_integer(t.element_type):
            raise fail(op, "integers", t)
    return operands


class ShiftOp(BinaryOp):
    """Two operands of one type of integer."""

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return super().infer(integers(cls, operands), props)


@irdl_op_definition
class ModOp(BinaryOp):
    """Remainder of integers with the sign of the divisor; 0 where the divisor is 0.

    ```mlir
    %y = graph.mod %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
    ```
    """

    name = "graph.mod"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return super().infer(integers(cls, operands), props)


@irdl_op_definition
class NotOp(UnaryOp):
    """All bits inverted; of i1, logical not.

    ```mlir
    %q = graph.not %p : (tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.not"
    FLOAT_ONLY: ClassVar[bool] = False

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        if not is_integer(x.element_type) and x.element_type != i1:
            raise fail(cls, "an operand of integers or i1", x)
        return [x]


@irdl_op_definition
class RemOp(BinaryOp):
    """Remainder of integers with the sign of the dividend; 0 where the divisor is 0.

    ```mlir
    %y = graph.rem %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
    ```
    """

    name = "graph.rem"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return super().infer(integers(cls, operands), props)


@irdl_op_definition
class ShiftLeftOp(ShiftOp):
    """lhs shifted left by rhs bits; 0 where rhs is negative or all of them.

    ```mlir
    %y = graph.shift_left %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
    ```
    """

    name = "graph.shift_left"


@irdl_op_definition
class ShiftRightOp(ShiftOp):
    """lhs shifted right by rhs bits, filled with the sign of a signed one.

    Where rhs is negative or all bits, the fill is all that is left.

    ```mlir
    %y = graph.shift_right %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
    ```
    """

    name = "graph.shift_right"


@irdl_op_definition
class XorOp(BitwiseOp):
    """Bits that differ; of i1, logical exclusive or.

    ```mlir
    %r = graph.xor %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.xor"


OPS: list[type[GraphOp]] = [ModOp, NotOp, RemOp, ShiftLeftOp, ShiftRightOp, XorOp]
