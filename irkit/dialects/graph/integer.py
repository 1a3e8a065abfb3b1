"""Elementwise ops of integers and booleans, bits and shifts; and remainders, of floats too."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from irkit.dialects.element_sets import BOOLEANS, INTEGERS, NUMBERS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.graph.logic import BitwiseOp


class IntegerOp(BinaryOp):
    """Two operands of one type of integer."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (INTEGERS,)


@irdl_op_definition
class ModOp(BinaryOp):
    """Remainder with the sign of the divisor, as NumPy's; of integers 0 where the divisor is 0.

    Of floats NaN there and of infinite dividends; a zero has the divisor's sign. By an infinity of the other
    sign the remainder is that infinity.

    ```mlir
    %y = graph.mod %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
    ```
    """

    name = "graph.mod"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class NotOp(UnaryOp):
    """All bits inverted; of i1, logical not.

    ```mlir
    %q = graph.not %p : (tensor<?x8xi1>) -> tensor<?x8xi1>
    ```
    """

    name = "graph.not"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (BOOLEANS | INTEGERS,)


@irdl_op_definition
class RemOp(BinaryOp):
    """Remainder with the sign of the dividend, zero too; of integers 0 where the divisor is 0.

    Of floats exact, as C's `fmod`: NaN by zero and of infinite dividends, the dividend itself by an infinity.

    ```mlir
    %y = graph.rem %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
    ```
    """

    name = "graph.rem"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class ShiftLeftOp(IntegerOp):
    """lhs shifted left by rhs bits; 0 where rhs is negative or all of them.

    ```mlir
    %y = graph.shift_left %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
    ```
    """

    name = "graph.shift_left"


@irdl_op_definition
class ShiftRightOp(IntegerOp):
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
