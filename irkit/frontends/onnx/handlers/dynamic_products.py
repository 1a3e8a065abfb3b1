"""Products of floats with quantised weights, as ONNX Runtime's quantiser and optimiser write them.

What is multiplied is brought to uint8 by its own least and largest element when the program runs; sums of
products are exact integers, which become floats by one multiplication.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of
from irkit.frontends.onnx.handlers.linear import product
from irkit.frontends.onnx.handlers.quantisation import dynamically
from irkit.frontends.onnx.handlers.quantised_products import centred, lone, per_row
from irkit.frontends.onnx.node import Handler, Node, Value


def scaled_product(
    node: Node, a: tuple[SSAValue, SSAValue], b: tuple[SSAValue, SSAValue], bias: SSAValue | None
) -> SSAValue:
    """The product of centred integers (i32) with their scales, as floats, plus `bias`."""
    total = product(node, a[0], b[0])
    scale = node.emit(graph.MulOp, a[1], b[1])
    y = node.emit(graph.MulOp, cast(node, total, element_of(scale)), scale)
    return y if bias is None else node.emit(graph.AddOp, y, bias)


def taken_dynamically(node: Node, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`x` as centred integers of eight bits, in i32, and their scale."""
    y, scale, zero = dynamically(node, x)
    return node.emit(graph.SubOp, cast(node, y, i32), cast(node, zero, i32)), scale


def _bias(node: Node, index: int) -> SSAValue | None:
    return None if node.given(index) is None else node.operand(index)


def _dynamic_matmul(node: Node) -> Sequence[Value]:
    """Inputs a, b as integers, b's scale, its zero point, and a bias."""
    b = centred(node, 1, 3, 0), per_row(node, 2, 0)
    a = taken_dynamically(node, node.operand(0))
    return [scaled_product(node, a, b, _bias(node, 4))]


def _matmul_to_float(node: Node) -> Sequence[Value]:
    """Inputs a and b as integers, their scales, their zero points, and a bias."""
    a = centred(node, 0, 4, 1), lone(node, 2)
    b = centred(node, 1, 5, 0), per_row(node, 3, 0)
    return [scaled_product(node, a, b, _bias(node, 6))]


MICROSOFT: dict[str, Handler] = {
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _matmul_to_float,
}
