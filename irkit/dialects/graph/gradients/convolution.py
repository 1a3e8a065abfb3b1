"""Gradients of convolutions: of one by its input a transposed one, by its filters a product with its windows.

V. Dumoulin and F. Visin, arXiv:1603.07285, chapter 4. The product is a tensor expression, so that its loops stand in
the order of the filters, and what is many, the batch and all places of a window, is summed over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.convolution import ConvBase
from irkit.dialects.graph.gradients.rule import Builder, Linear, Rules, zeros
from irkit.dialects.graph.gradients.shape import padded
from irkit.dialects.types import ints, is_half, tensor_type


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
    """The cotangent of the filters of a convolution of `x`, whose result's is `ct`.

    One product: filters by the input's windows, summed over the batch and all places of a window. The
    cotangent is laid out as that product reads it. Of 16-bit floats the sums are of float32, as a
    convolution's are.
    """
    group, rank, kind = _group(op), len(kernel), o.dtype(ct)
    batch, channels, *sizes = o.shape(x)
    if 0 in (*o.shape(x), *o.shape(ct)):
        return zeros(o, op.w)
    pads, strides, dilations = (ints(p) for p in (op.pads, op.strides, op.dilations))
    if is_half(tensor_type(ct).element_type):
        x, ct = o.cast(x, np.float32), o.cast(ct, np.float32)
    windows, columns = o.reshape(x, [batch, group, channels // group, *sizes]), o.shape(ct)
    windows = padded(o, windows, [0, 0, 0, *pads[:rank]], [0, 0, 0, *pads[rank:]])
    columns = o.reshape(ct, [batch, group, columns[1] // group, *columns[2:]])
    columns = o.transpose(columns, [1, 2, 0, *range(3, 3 + rank)])
    out = ", ".join(f"h{d}" for d in range(rank))
    taps = ", ".join(f"t{d}" for d in range(rank))
    slides = ", ".join(f"{strides[d]} * h{d} + {dilations[d]} * t{d}" for d in range(rank))
    extents = ", ".join(f"t{d} in 0:{size}" for d, size in enumerate(kernel))
    text = f"W(g, m, c, {taps}) +=! D(g, m, n, {out}) * X(n, g, c, {slides}) where {extents}"
    made = o(graph.ExpressionOp, columns, windows, text=text)
    return o.cast(o.reshape(made, o.shape(op.w)), kind)


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
