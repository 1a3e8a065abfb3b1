"""Convolution: windows slide over an input that is padded first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, Tensor, ints, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import ZERO, Index, TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule


def window(position: int, stride: int, tap: int, dilation: int = 1) -> AffineExpr:
    """position * stride + tap * dilation, of two loops."""

    def times(loop: int, factor: int) -> AffineExpr:
        expr: AffineExpr = AffineDimExpr(loop)
        return expr if factor == 1 else expr * factor

    return times(position, stride) + times(tap, dilation)


def padded(
    b: TensorBuilder, op: GraphOp, x: SSAValue, before: Sequence[int], after: Sequence[int],
    fill: float,
) -> SSAValue:  # fmt: skip
    """`x` with its spatial dimensions padded by `fill`."""
    if DYNAMIC in tensor_type(x).get_shape()[1:]:
        raise UnsupportedError(f"'{op.name}' with a dynamic dimension that does not lead")
    lead = [0] * (tensor_type(x).get_num_dims() - len(before))
    return b.pad(x, [*lead, *before], [*lead, *after], fill)


def _conv(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ConvOp)
    pads = ints(op.pads)
    rank = len(pads) // 2
    x = padded(b, op, _in_groups(b, op, op.x), pads[:rank], pads[rank:], 0)
    return [_slide(b, op, x, op.w, ints(op.strides))]


def _in_groups(b: TensorBuilder, op: graph.ConvOp | graph.ConvTransposeOp, x: SSAValue) -> SSAValue:
    """`x` as n×group×channels/group×image. Before it is padded, so that the padding is part of the
    convolution, as it is of one without groups."""
    group = op.group.value.data
    batch, channels, *image = tensor_type(x).get_shape()
    return x if group == 1 else b.reshape(x, (batch, group, channels // group, *image))


def _slide(
    b: TensorBuilder, op: graph.ConvOp | graph.ConvTransposeOp, x: SSAValue, w: SSAValue,
    strides: Sequence[int],
) -> SSAValue:  # fmt: skip
    """Windows of `x`, which is padded and in groups already, times the filters `w` (O×C/group×kernel).

    In groups, as a convolution with one more parallel loop.
    """
    t, dilations, group = tensor_type(op.y), ints(op.dilations), op.group.value.data
    batch = tensor_type(x).get_shape()[0]
    outputs, inputs, *kernel = tensor_type(w).get_shape()
    rank, bias, lead = len(kernel), op.b, [outputs]
    if group > 1:
        lead = [group, outputs // group]
        w = b.reshape(w, (*lead, inputs, *kernel))
        bias = None if bias is None else b.reshape(bias, lead)
    # Loops: n, (g,) oc, out..., ic, tap...
    of_filter = list(range(1, 1 + len(lead)))
    first = 1 + len(lead)
    out, ic = list(range(first, first + rank)), first + rank
    taps = list(range(ic + 1, ic + 1 + rank))
    slides = [window(out[d], strides[d], taps[d], dilations[d]) for d in range(rank)]
    x_index: Index = [0, *of_filter[:-1], ic, *slides]
    shape = (batch, *lead, *t.get_shape()[2:])
    init = _bias(b, t, shape, bias, of_filter, x)
    y = b.contract(
        (x, x_index), (w, [*of_filter, ic, *taps]), (init, [0, *of_filter, *out]), 1 + rank
    )
    return y if group == 1 else b.reshape(y, t.get_shape())


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


def _conv_transpose(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """As a convolution of stride 1 with the filters mirrored, over an input whose elements stand
    `stride` apart with zeros between them."""
    assert isinstance(op, graph.ConvTransposeOp)
    strides, pads, dilations = ints(op.strides), ints(op.pads), ints(op.dilations)
    kernel, sizes = tensor_type(op.w).get_shape()[2:], tensor_type(op.y).get_shape()[2:]
    rank = len(kernel)
    x = _spread(b, op.x, strides)
    before: list[int] = []
    after: list[int] = []
    for d, size in enumerate(tensor_type(x).get_shape()[2:]):
        reach = dilations[d] * (kernel[d] - 1)
        before.append(reach - pads[d])
        after.append(sizes[d] + reach - size - before[d])
    x = _cropped(b, x, before, after)
    x = padded(b, op, x, [max(n, 0) for n in before], [max(n, 0) for n in after], 0)
    return [_slide(b, op, _in_groups(b, op, x), _mirrored(b, op), [1] * rank)]


def _spread(b: TensorBuilder, x: SSAValue, strides: Sequence[int]) -> SSAValue:
    """`x` with `stride - 1` zeros behind each element of each spatial dimension."""
    batch, channels, *sizes = tensor_type(x).get_shape()
    if all(s == 1 for s in strides):
        return x
    split = [n for size in sizes for n in (size, 1)]
    high = [n for s in strides for n in (0, s - 1)]
    x = b.reshape(x, (batch, channels, *split))
    x = b.pad(x, [0] * (2 + len(split)), [0, 0, *high], 0)
    return b.reshape(x, (batch, channels, *(n * s for n, s in zip(sizes, strides, strict=True))))


def _cropped(
    b: TensorBuilder, x: SSAValue, before: Sequence[int], after: Sequence[int]
) -> SSAValue:
    """`x` without the elements that a negative padding takes away."""
    shape = tensor_type(x).get_shape()
    cut = [max(-n, 0) for n in before]
    sizes = [
        s - c - max(-n, 0) for s, c, n in zip(shape[2:], cut, after, strict=True)
    ]  # fmt: skip
    return b.cut(x, [0, 0, *cut], [*shape[:2], *sizes])


def _mirrored(b: TensorBuilder, op: graph.ConvTransposeOp) -> SSAValue:
    """C×(O/group)×kernel filters as O×(C/group)×kernel, last tap first."""
    group = op.group.value.data
    channels, outputs, *kernel = tensor_type(op.w).get_shape()
    rank = len(kernel)

    def pack(w: np.ndarray) -> np.ndarray:
        w = np.flip(w, tuple(range(2, 2 + rank)))
        w = w.reshape(group, channels // group, outputs, *kernel).swapaxes(1, 2)
        return w.reshape(group * outputs, channels // group, *kernel)

    known = b.packed(op.w, ("mirrored", group), pack)
    if known is not None:
        return known
    w = b.reshape(op.w, (group, channels // group, outputs, *kernel))
    last: list[AffineExpr] = [AffineDimExpr(3 + d) * -1 + (k - 1) for d, k in enumerate(kernel)]
    shape = (group, outputs, channels // group, *kernel)
    w = b.broadcast(w, [0, 2, 1, *last], shape, [w])
    return b.reshape(w, (group * outputs, channels // group, *kernel))


RULES: dict[type[GraphOp], Rule] = {graph.ConvOp: _conv, graph.ConvTransposeOp: _conv_transpose}
