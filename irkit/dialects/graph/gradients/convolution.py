"""Gradients of convolutions: of one by its input a transposed one, by its filters another convolution.

By filters the roles of dimensions change: channels are the batch, the batch is summed over, the result's cotangent is
the filter, strides are dilations and the other way round (as in V. Dumoulin and F. Visin, arXiv:1603.07285, chapter 4).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.convolution import ConvBase
from irkit.dialects.graph.gradients.rule import Builder, Linear, Rules
from irkit.dialects.types import ints


def _props(op: ConvBase) -> dict[str, object]:
    names = ("strides", "pads", "dilations", "group", "output_padding")
    return {n: op.properties[n] for n in names if n in op.properties}


def _group(op: ConvBase) -> int:
    assert isinstance(op.group, IntegerAttr)
    return op.group.value.data


def _leading(o: Builder, x: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """The first elements along each dimension."""
    for axis, size in enumerate(sizes):
        x = o.cut(x, axis, 0, size)
    return x


def filters(o: Builder, op: ConvBase, x: SSAValue, ct: SSAValue, kernel: Sequence[int]) -> SSAValue:
    """The cotangent of the filters of a convolution of `x`, whose result's is `ct`."""
    group, rank = _group(op), len(kernel)
    batch, channels, *sizes = o.shape(x)
    each = channels // group
    spatial = list(range(2, 2 + rank))
    parts = o.reshape(x, [batch, group, each, *sizes])
    parts = o.transpose(parts, [2, 1, 0, *(d + 1 for d in spatial)])
    rows = o.reshape(parts, [each, group * batch, *sizes])
    columns = o.transpose(ct, [1, 0, *spatial])
    made = o(
        graph.ConvOp, rows, columns, strides=ints(op.dilations), dilations=ints(op.strides),
        pads=ints(op.pads), group=group,
    )  # fmt: skip
    # Where windows do not reach the end there is room for more taps than the filters have.
    made = o.transpose(made, [1, 0, *spatial])
    return _leading(o, made, [*o.shape(made)[:2], *kernel])


def _x(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.ConvOp)
    strides, pads, dilations = (ints(p) for p in (op.strides, op.pads, op.dilations))
    rank = len(strides)
    kernel, outputs = o.shape(op.w)[2:], o.shape(op.y)[2:]
    longer = [
        size - ((outputs[d] - 1) * strides[d] + dilations[d] * (kernel[d] - 1) + 1)
        + pads[d] + pads[rank + d]
        for d, size in enumerate(o.shape(op.x)[2:])
    ]  # fmt: skip
    return o(graph.ConvTransposeOp, ct, op.w, **_props(op), output_padding=longer)


def _w(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.ConvOp)
    return filters(o, op, op.x, ct, o.shape(op.w)[2:])


def _transposed_x(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.ConvTransposeOp)
    props = {n: p for n, p in _props(op).items() if n != "output_padding"}
    return _leading(o, o(graph.ConvOp, ct, op.w, **props), o.shape(op.x))


def _transposed_w(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.ConvTransposeOp)
    return filters(o, op, ct, op.x, o.shape(op.w)[2:])


def _bias(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    return o.reduce(ct, "sum", [d for d in range(len(o.shape(ct))) if d != 1])


def _through_x(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    assert isinstance(op, ConvBase)
    return o(type(op), t, op.w, **_props(op))


def _through_w(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    assert isinstance(op, ConvBase)
    return o(type(op), op.x, t, **_props(op))


def _through_bias(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    shape = o.shape(op.results[0])
    return o.expand(o.reshape(t, [1, shape[1], *[1] * (len(shape) - 2)]), shape)


_APPLIES = {0: _through_x, 1: _through_w, 2: _through_bias}

RULES: Rules = {
    graph.ConvOp: Linear({0: _x, 1: _w, 2: _bias}, _APPLIES),
    graph.ConvTransposeOp: Linear({0: _transposed_x, 1: _transposed_w, 2: _bias}, _APPLIES),
}
