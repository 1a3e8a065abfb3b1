"""Convolution: windows slide over an input that is padded first."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, Tensor, ints, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.nests import ZERO, Index


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
    x = padded(b, op, in_groups(b, op, op.x), pads[:rank], pads[rank:], 0)
    return [slide(b, op, x, op.w, ints(op.strides))]


def in_groups(b: TensorBuilder, op: graph.ConvOp | graph.ConvTransposeOp, x: SSAValue) -> SSAValue:
    """`x` as n×group×channels/group×image. Before it is padded, so that the padding is part of the
    convolution, as it is of one without groups."""
    group = op.group.value.data
    batch, channels, *image = tensor_type(x).get_shape()
    return x if group == 1 else b.reshape(x, (batch, group, channels // group, *image))


def slide(
    b: TensorBuilder, op: graph.ConvOp | graph.ConvTransposeOp, x: SSAValue, w: SSAValue,
    strides: Sequence[int], sizes: Sequence[int] | None = None,
) -> SSAValue:  # fmt: skip
    """Windows of `x`, which is padded and in groups already, times the filters `w` (O×C/group×kernel); of an
    image of `sizes`, the op's result's by default.

    In groups, as a convolution with one more parallel loop.
    """
    t, dilations, group = tensor_type(op.y), ints(op.dilations), op.group.value.data
    image = t.get_shape()[2:] if sizes is None else tuple(sizes)
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
    shape = (batch, *lead, *image)
    init = bias_of(b, t, shape, bias, of_filter, x)
    y = b.contract(
        (x, x_index), (w, [*of_filter, ic, *taps]), (init, [0, *of_filter, *out]), 1 + rank
    )
    return y if group == 1 else b.reshape(y, (batch, outputs, *image))


def bias_of(
    b: TensorBuilder, t: Tensor, shape: Sequence[int], bias: SSAValue | None, loops: Sequence[int],
    x: SSAValue,
) -> SSAValue:  # fmt: skip
    """What the convolution adds to: zero, or the bias, which is read at `loops`."""
    if bias is None:
        return b.fill(0, shape, t.element_type, [x])
    sizes = tensor_type(bias).get_shape()
    index = [ZERO if s == 1 else loop for s, loop in zip(sizes, loops, strict=True)]
    return b.broadcast(bias, index, shape, [x])


RULES: dict[type[GraphOp], Rule] = {graph.ConvOp: _conv}
