"""Products of quantised tensors: exact integers, brought to the result's scale by one multiplication.

As in ONNX Runtime: factors are centred (their zero points taken off), products and sums are of int32,
which wrap, the bias is added to them, and `saturated(float32(sum) * (scale_a * scale_b / scale_y), zero_y)`
is the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import tensor_type
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of, scalar
from irkit.frontends.onnx.handlers.linear import product
from irkit.frontends.onnx.handlers.quantisation import has_zero_point, saturated
from irkit.frontends.onnx.handlers.window import filters, sliding, spatial
from irkit.frontends.onnx.node import Handler, Node, Value


def lone(node: Node, index: int) -> SSAValue:
    """Input `index`, which must be one number, without dimensions."""
    value = node.operand(index)
    if tensor_type(value).get_shape() not in ((), (1,)):
        node.refuse(
            node.name_of(index), f"only one for the whole tensor is supported, got {value.type}"
        )
    return node.emit(graph.ReshapeOp, value, shape=[])


def per_row(node: Node, index: int, behind: int) -> SSAValue:
    """Input `index`, one number or one for each row, with `behind` dimensions of one element behind it."""
    value = node.operand(index)
    shape = list(tensor_type(value).get_shape())
    if shape in ([], [1]):
        return node.emit(graph.ReshapeOp, value, shape=[])
    if len(shape) != 1:
        return value
    return node.emit(graph.ReshapeOp, value, shape=[*shape, *[1] * behind])


def centred(node: Node, index: int, zero: int, behind: int) -> SSAValue:
    """Input `index` as i32, less its zero point (input `zero`; 0 if it is left out): see `per_row`."""
    x = cast(node, node.operand(index), i32)
    if not has_zero_point(node, zero):
        return x
    return node.emit(graph.SubOp, x, cast(node, per_row(node, zero, behind), i32))


def _requantised(
    node: Node, total: SSAValue, factors: tuple[SSAValue, SSAValue], scale: int, zero: int
) -> SSAValue:
    """A sum of products as the result: scale and zero point are inputs, the latter may be left out."""
    first, second = (cast(node, f, f32) for f in factors)
    factor = node.emit(graph.MulOp, first, second)
    factor = node.emit(graph.DivOp, factor, cast(node, lone(node, scale), f32))
    point = lone(node, zero)
    exact = node.emit(graph.MulOp, cast(node, total, f32), factor)
    return saturated(node, exact, point, element_of(point))


def _matmul_integer(node: Node) -> Sequence[Value]:
    return [product(node, centred(node, 0, 2, 1), centred(node, 1, 3, 0))]


def _qlinear_matmul(node: Node) -> Sequence[Value]:
    total = product(node, centred(node, 0, 2, 1), centred(node, 3, 5, 0))
    scales = per_row(node, 1, 1), per_row(node, 4, 0)
    return [_requantised(node, total, scales, 6, 7)]


def _convolved(node: Node, weights: int, zeros: tuple[int, int], bias: int | None) -> SSAValue:
    """The convolution of centred inputs: padding is as many zero points."""
    sizes = spatial(node)
    where = sliding(node, filters(node, sizes, weights), sizes)
    operands = [centred(node, 0, zeros[0], 0), centred(node, weights, zeros[1], len(sizes) + 1)]
    if bias is not None and node.given(bias) is not None:
        operands.append(cast(node, node.operand(bias), i32))
    return node.emit(
        graph.ConvOp,
        *operands,
        strides=where.strides,
        pads=where.pads,
        dilations=where.dilations,
        group=int(node.attribute("group", 1)),
    )


def _conv_integer(node: Node) -> Sequence[Value]:
    return [_convolved(node, 1, (2, 3), None)]


def _qlinear_conv(node: Node) -> Sequence[Value]:
    total = _convolved(node, 3, (2, 5), 8)
    if int(node.attribute("channels_last", 0)):
        node.refuse("channels_last = 1", "only channels behind the batch are supported")
    scales = lone(node, 1), per_row(node, 4, len(spatial(node)))
    return [_requantised(node, total, scales, 6, 7)]


def _scale_of_columns(node: Node, index: int, alpha: float) -> tuple[SSAValue, SSAValue]:
    """`alpha` times the scale of A, and that of B's columns, as ONNX Runtime multiplies them."""
    first = cast(node, lone(node, index), f32)
    return node.emit(graph.MulOp, scalar(node, alpha, first), first), per_row(node, index + 3, 0)


def q_gemm(node: Node) -> Sequence[Value]:
    """com.microsoft's QGemm: without a zero point of the result that is f32, by its scale if it has one.
    The bias is i32."""
    turned = bool(node.attribute("transB", 0))
    operands = [centred(node, 0, 2, 1), centred(node, 3, 5, int(turned))]
    if node.given(6) is not None:
        operands.append(cast(node, node.operand(6), i32))
    total = node.emit(
        graph.GemmOp,
        *operands,
        trans_a=bool(node.attribute("transA", 0)),
        trans_b=turned,
        alpha=1.0,
        beta=1.0,
    )
    scales = _scale_of_columns(node, 1, float(node.attribute("alpha", 1.0)))
    if node.given(8) is not None:
        return [_requantised(node, total, scales, 7, 8)]
    factor = node.emit(graph.MulOp, *scales)
    if node.given(7) is not None:
        factor = node.emit(graph.DivOp, factor, lone(node, 7))
    return [node.emit(graph.MulOp, cast(node, total, f32), factor)]


HANDLERS: dict[str, Handler] = {
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
}
