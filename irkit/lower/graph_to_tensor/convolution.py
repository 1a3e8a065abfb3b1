"""Convolution and pooling: windows slide over an input that is padded first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, Tensor, ints, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import ZERO, Scalars, TensorBuilder, lowest
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.reduction import Combine, add, divided, maximum
from irkit.weights import Array


def window(position: int, stride: int, tap: int, dilation: int = 1) -> AffineExpr:
    """position * stride + tap * dilation, of two loops."""

    def times(loop: int, factor: int) -> AffineExpr:
        expr: AffineExpr = AffineDimExpr(loop)
        return expr if factor == 1 else expr * factor

    return times(position, stride) + times(tap, dilation)


def _padded(
    b: TensorBuilder, op: GraphOp, x: SSAValue, pads: Sequence[int], fill: float
) -> SSAValue:
    if DYNAMIC in tensor_type(x).get_shape()[1:]:
        raise UnsupportedError(f"'{op.name}' with a dynamic dimension that does not lead")
    top, left, bottom, right = pads
    return b.pad(x, [0, 0, top, left], [0, 0, bottom, right], fill)


def _conv(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ConvOp)
    x = _padded(b, op, op.x, ints(op.pads), 0)
    if op.group.value.data > 1:
        return [_grouped_conv(b, op, x)]
    t, strides, dilations = tensor_type(op.y), ints(op.strides), ints(op.dilations)
    n, oc, oh, ow, ic, kh, kw = range(7)
    x_index = (
        n,
        ic,
        window(oh, strides[0], kh, dilations[0]),
        window(ow, strides[1], kw, dilations[1]),
    )
    init = _bias(b, t, t.get_shape(), op.b, [oc], x)
    return [b.contract((x, x_index), (op.w, (oc, ic, kh, kw)), (init, (n, oc, oh, ow)), 3)]


def _grouped_conv(b: TensorBuilder, op: graph.ConvOp, x: SSAValue) -> SSAValue:
    """As a convolution with one more parallel loop, over groups."""
    t, strides, dilations = tensor_type(op.y), ints(op.strides), ints(op.dilations)
    group = op.group.value.data
    batch, channels, *image = tensor_type(x).get_shape()
    outputs, inputs, *kernel = tensor_type(op.w).get_shape()
    x = b.reshape(x, (batch, group, channels // group, *image))
    w = b.reshape(op.w, (group, outputs // group, inputs, *kernel))
    bias = None if op.b is None else b.reshape(op.b, (group, outputs // group))
    n, g, oc, oh, ow, ic, kh, kw = range(8)
    x_index = (
        n,
        g,
        ic,
        window(oh, strides[0], kh, dilations[0]),
        window(ow, strides[1], kw, dilations[1]),
    )
    shape = (batch, group, outputs // group, *t.get_shape()[2:])
    init = _bias(b, t, shape, bias, [g, oc], x)
    y = b.contract((x, x_index), (w, (g, oc, ic, kh, kw)), (init, (n, g, oc, oh, ow)), 3)
    return b.reshape(y, t.get_shape())


def _bias(
    b: TensorBuilder, t: Tensor, shape: Sequence[int], bias: SSAValue | None, loops: Sequence[int],
    x: SSAValue,
) -> SSAValue:  # fmt: skip
    """What the convolution adds to: zero, or the bias, which is read at `loops`."""
    if bias is None:
        return b.fill(0, shape, t.element_type, [x])
    sizes = tensor_type(bias).get_shape()
    index = [ZERO if s == 1 else loop for s, loop in zip(sizes, loops, strict=True)]
    return b.broadcast(bias, index, shape, [x])


def _pool(
    b: TensorBuilder, op: graph.MaxPoolOp | graph.AveragePoolOp, fill: float, combine: Combine
) -> SSAValue:
    t, kernel, strides = tensor_type(op.y), ints(op.kernel_shape), ints(op.strides)
    x = _padded(b, op, op.x, ints(op.pads), fill)
    n, c, oh, ow, kh, kw = range(6)
    x_index = (n, c, window(oh, strides[0], kh), window(ow, strides[1], kw))
    # Read by no one: it says how large a window is.
    extent = b.empty(kernel, t.element_type, [])
    init = b.fill(fill, t.get_shape(), t.element_type, [x])

    def body(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        element, _, acc = args
        return [s(combine(acc, element))]

    return b.generic([(x, x_index), (extent, (kh, kw))], [(init, (n, c, oh, ow))], 4, 2, body)[0]


def _max_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.MaxPoolOp)
    element = tensor_type(op.y).element_type
    return [_pool(b, op, lowest(element), maximum(element))]


def _average_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.AveragePoolOp)
    t = tensor_type(op.y)
    total = _pool(b, op, 0, add(t.element_type))
    count: Array | int = math.prod(ints(op.kernel_shape))
    if not op.count_include_pad.value.data and any(ints(op.pads)):
        count = _window_counts(op)
    if isinstance(count, int) or (count == count.flat[0]).all():
        return [divided(b, total, count if isinstance(count, int) else int(count.flat[0]))]
    counts = b.constant(count.astype(numpy_dtype(t.element_type)), "count")
    return [
        b.elementwise(
            t.get_shape(), t.element_type, [total, counts], lambda s, v: s(arith.DivfOp(v[0], v[1]))
        )
    ]


def _window_counts(op: graph.AveragePoolOp) -> Array:
    """How many elements of each window are no padding: out_height×out_width."""
    top, left, bottom, right = ints(op.pads)
    height, width = tensor_type(op.x).get_shape()[2:]
    inside = np.pad(np.ones((height, width), np.int64), ((top, bottom), (left, right)))
    views = sliding_window_view(inside, ints(op.kernel_shape))
    rows, columns = ints(op.strides)
    return views[::rows, ::columns].sum(axis=(2, 3))


RULES: dict[type[GraphOp], Rule] = {
    graph.AveragePoolOp: _average_pool,
    graph.ConvOp: _conv,
    graph.MaxPoolOp: _max_pool,
}
