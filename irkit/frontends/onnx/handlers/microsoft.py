"""Operators of the domain com.microsoft on quantised tensors, as ONNX Runtime's quantiser writes them.

What is no product is computed in float32: taken off its zero point and scale, computed, and quantised
again. Sums and products of two tensors are rounded as ONNX Runtime rounds them; it sums pools in another
order, so where one is half-way between two numbers it may have the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of, scalar
from irkit.frontends.onnx.handlers.quantisation import HANDLERS as LINEAR
from irkit.frontends.onnx.handlers.quantisation import saturated
from irkit.frontends.onnx.handlers.quantised_products import centred, lone, q_gemm
from irkit.frontends.onnx.handlers.window import pool, spatial
from irkit.frontends.onnx.node import Handler, Node, Value


def _real(node: Node, index: int) -> SSAValue:
    """The numbers that inputs `index` to `index + 2` stand for: elements, scale, zero point."""
    lone(node, index + 1)
    if node.given(index + 2) is not None:
        lone(node, index + 2)
    x = cast(node, centred(node, index, index + 2, 0), f32)
    return node.emit(graph.MulOp, x, lone(node, index + 1))


def _quantised(node: Node, x: SSAValue, scale: int, like: int = 0) -> SSAValue:
    """`x` as elements of input `like`, by the scale and the zero point that inputs `scale` on are."""
    zero = lone(node, scale + 1) if node.given(scale + 1) is not None else None
    ratio = node.emit(graph.DivOp, x, lone(node, scale))
    return saturated(node, ratio, zero, element_of(node.operand(like)))


def _zero_point(node: Node, index: int) -> SSAValue:
    """A zero point as a float; 0 if it is left out."""
    if node.given(index) is None:
        return node.tensor(np.zeros((), np.float32))
    return cast(node, lone(node, index), f32)


def _add(node: Node) -> Sequence[Value]:
    """a * ratio_a + (b * ratio_b + fixed), rounded as ONNX Runtime does where there is fused multiply-add.

    `fixed` holds all three zero points: the result's is added before it is rounded.
    """
    a, b = (cast(node, node.operand(i), f32) for i in (0, 3))
    scale = lone(node, 6)
    ratio_a, ratio_b = (node.emit(graph.DivOp, lone(node, i), scale) for i in (1, 4))
    zero_a, zero_b, zero = (_zero_point(node, i) for i in (2, 5, 7))
    moved = node.emit(graph.FmaOp, ratio_a, zero_a, node.emit(graph.MulOp, ratio_b, zero_b))
    fixed = node.emit(graph.SubOp, zero, moved)
    y = node.emit(graph.FmaOp, a, ratio_a, node.emit(graph.FmaOp, b, ratio_b, fixed))
    return [saturated(node, y, None, element_of(node.operand(0)))]


def _multiply(node: Node) -> Sequence[Value]:
    """The product of integers is exact, scaled once, and moved by the zero point before it is rounded."""
    for index in (2, 5):
        if node.given(index) is not None:
            lone(node, index)
    a, b = (cast(node, centred(node, i, i + 2, 0), f32) for i in (0, 3))
    scale = node.emit(graph.MulOp, lone(node, 1), lone(node, 4))
    scale = node.emit(graph.DivOp, scale, lone(node, 6))
    y = node.emit(graph.MulOp, node.emit(graph.MulOp, a, b), scale)
    y = node.emit(graph.AddOp, y, _zero_point(node, 7))
    return [saturated(node, y, None, element_of(node.operand(0)))]


def _unary(function: Callable[[Node, SSAValue], SSAValue]) -> Handler:
    return lambda node: [_quantised(node, function(node, _real(node, 0)), 3)]


def _sigmoid(node: Node, x: SSAValue) -> SSAValue:
    return node.emit(graph.SigmoidOp, x)


def _leaky_relu(node: Node, x: SSAValue) -> SSAValue:
    slope = scalar(node, float(node.attribute("alpha", 0.01)), x)
    positive = node.emit(graph.CompareOp, x, scalar(node, 0, x), predicate="ge")
    return node.emit(graph.WhereOp, positive, x, node.emit(graph.MulOp, x, slope))


def _concat(node: Node) -> Sequence[Value]:
    """Inputs: the result's scale and zero point, then each operand's elements, scale and zero point."""
    first = node.type_of(2)
    axis = node.axis(int(node.attribute("axis", 1)), first.get_num_dims())
    parts = [_real(node, index) for index in range(2, len(node.inputs), 3)]
    return [_quantised(node, node.emit(graph.ConcatOp, *parts, axis=axis), 0, 2)]


def _where(node: Node) -> Sequence[Value]:
    """Inputs: the condition, two operands, each with scale and zero point, and those of the result."""
    chosen = node.emit(graph.WhereOp, node.operand(0), _real(node, 1), _real(node, 4))
    return [_quantised(node, chosen, 7, 1)]


def _channels_first(node: Node) -> None:
    if int(node.attribute("channels_last", 0)):
        node.refuse("channels_last = 1", "only channels behind the batch are supported")


def _average_pool(node: Node) -> Sequence[Value]:
    _channels_first(node)
    include = bool(node.attribute("count_include_pad", 0))
    y = node.emit(graph.AveragePoolOp, _real(node, 0), count_include_pad=include, **pool(node))
    return [_quantised(node, y, 3)]


def _global_average_pool(node: Node) -> Sequence[Value]:
    """The sum is of integers; ONNX Runtime scales it by `scale_x / (scale_y * count)`."""
    _channels_first(node)
    sizes = spatial(node)
    axes = list(range(2, 2 + len(sizes)))
    x = cast(node, centred(node, 0, 2, 0), i32)
    total = cast(node, node.emit(graph.ReduceOp, x, kind="sum", axes=axes, keepdims=True), f32)
    scale = lone(node, 3)
    count = node.emit(graph.MulOp, scale, scalar(node, math.prod(sizes), scale))
    factor = node.emit(graph.DivOp, lone(node, 1), count)
    zero = lone(node, 4) if node.given(4) is not None else None
    exact = node.emit(graph.MulOp, total, factor)
    return [saturated(node, exact, zero, element_of(node.operand(0)))]


def _softmax(node: Node) -> Sequence[Value]:
    """Inputs: elements, scale, zero point, the result's scale and zero point."""
    if int(node.attribute("opset", 0)) < 13:
        node.refuse("opset", "only Softmax of operator set 13 and later is supported")
    rank = node.type_of(0).get_num_dims()
    axis = node.axis(int(node.attribute("axis", -1)), rank)
    if axis != rank - 1 or node.type_of(0).get_shape()[-1] == DYNAMIC:
        node.refuse(f"axis = {axis}", "only the last dimension is supported")
    return [_quantised(node, node.emit(graph.SoftmaxOp, _real(node, 0), axis=axis), 3)]


MICROSOFT: dict[str, Handler] = {
    "DequantizeLinear": LINEAR["DequantizeLinear"],
    "QGemm": q_gemm,
    "QLinearAdd": _add,
    "QLinearAveragePool": _average_pool,
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _global_average_pool,
    "QLinearLeakyRelu": _unary(_leaky_relu),
    "QLinearMul": _multiply,
    "QLinearSigmoid": _unary(_sigmoid),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _where,
    "QuantizeLinear": LINEAR["QuantizeLinear"],
}
