"""Gradients of ops that move elements: each is linear, and its transpose moves them back, adding where it copied.

A gather is transposed by adding rows where the indices say, in their order. One of single elements (`gather_elements`) is
transposed by comparing each index with each place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.gather_base import GatherBase, GatherElementsBase
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import (
    Builder,
    Linear,
    Maybe,
    Rule,
    Rules,
    made_good,
    unbroadcast,
    zeros,
)
from irkit.dialects.types import ints


class _Concat(Rule):
    """Parts beside one another."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        parts = [made_good(o, t, v) for t, v in zip(tangents, op.operands, strict=True)]
        return [o(graph.ConcatOp, *parts, **op.properties)]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, graph.ConcatOp)
        (cotangent,), axis, start = cotangents, op.axis.value.data, 0
        found: list[Maybe] = []
        for asked, operand in zip(wanted, op.operands, strict=True):
            size = o.shape(operand)[axis]
            part = None
            if asked and cotangent is not None:
                part = o.cut(cotangent, axis, start, size)
            found.append(part)
            start += size
        return found


def _narrowed(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    return unbroadcast(o, ct, o.shape(op.operands[0]))


def _widened(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.expand(t, o.shape(op.results[0]))


def padded(o: Builder, x: SSAValue, low: Sequence[int], high: Sequence[int]) -> SSAValue:
    """Zeros around."""
    if not any((*low, *high)):
        return x
    return o(graph.PadOp, x, low=list(low), high=list(high), value=0.0)


def _pad(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    assert isinstance(op, graph.PadOp)
    return padded(o, t, ints(op.low), ints(op.high))


def _unpad(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.PadOp)
    shape = o.shape(op.x)
    if 0 in shape:
        return zeros(o, op.x)
    return o(graph.SliceOp, ct, offsets=ints(op.low), sizes=shape, strides=[1] * len(shape))


def unsliced(
    o: Builder,
    x: SSAValue,
    offsets: Sequence[int],
    strides: Sequence[int],
    shape: Sequence[int],
) -> SSAValue:
    """The transpose of a slice of `shape`: its elements where they were, zeros elsewhere."""
    for axis, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        x = _unsliced_along(o, x, axis, offset, stride, shape[axis])
    return x


def _unsliced_along(
    o: Builder, x: SSAValue, axis: int, offset: int, stride: int, extent: int
) -> SSAValue:
    shape = list(o.shape(x))
    count, step = shape[axis], abs(stride)
    if stride < 0:
        x = o.cut(x, axis, count - 1, count, -1)
        offset += (count - 1) * stride
    if step > 1 and count > 1:
        # Zeros between, as columns behind each element.
        apart = o.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        high = [0] * (len(shape) + 1)
        high[axis + 1] = step - 1
        apart = padded(o, apart, [0] * len(high), high)
        shape[axis] = count * step
        x = o.cut(o.reshape(apart, shape), axis, 0, (count - 1) * step + 1)
    low, high = [0] * len(shape), [0] * len(shape)
    low[axis], high[axis] = offset, extent - offset - o.shape(x)[axis]
    return padded(o, x, low, high)


def _unslice(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.SliceOp)
    return unsliced(o, ct, ints(op.offsets), ints(op.strides), o.shape(op.x))


def _transposed_back(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.TransposeOp)
    return o.transpose(ct, np.argsort(ints(op.permutation)).tolist())


def _reshaped_back(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    return o.reshape(ct, o.shape(op.operands[0]))


def within(o: Builder, indices: SSAValue, extent: int) -> SSAValue:
    """Indices as int64, and the nearest where one lies outside, as gathers take them."""
    wide = o.cast(indices, np.int64)
    low = o(graph.MaxOp, wide, o.like(0, wide))
    return o(graph.MinOp, low, o.like(extent - 1, wide))


def scattered(
    o: Builder, ct: SSAValue, indices: SSAValue, axis: int, shape: Sequence[int]
) -> SSAValue:
    """The transpose of a gather along `axis` of `shape`."""
    extent, count = shape[axis], math.prod(o.shape(indices))
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if o.dtype(ct).itemsize < 4:
        return o.reshape(_product_with_hits(o, ct, indices, [before, extent, after]), shape)
    numbers = o.reshape(indices, [count])
    if before > 1:
        starts = np.arange(before).reshape(-1, 1) * extent
        numbers = o(graph.AddOp, within(o, numbers, extent), o.constant(starts))
        numbers = o.reshape(numbers, [before * count])
    rows = o.reshape(ct, [before * count, after])
    empty = o.expand(o.like(0, ct), [before * extent, after])
    return o.reshape(o(graph.ScatterAddOp, empty, numbers, rows), shape)


def _product_with_hits(
    o: Builder, ct: SSAValue, indices: SSAValue, shape: Sequence[int]
) -> SSAValue:
    """The same of floats of 16 bits, whose sums are products': of a gather along the second of three
    dimensions, the cotangent times the matrix that says which index picked what."""
    (before, extent, after), count = shape, math.prod(o.shape(indices))
    flat = o.reshape(within(o, indices, extent), [1, count])
    hits = o.compare(o.constant(np.arange(extent).reshape(-1, 1)), flat, "eq")
    picked = [count, after] if before == 1 else [before, count, after]
    return o(graph.MatmulOp, o.cast(hits, o.dtype(ct)), o.reshape(ct, picked))


class _ScatterAdd(Rule):
    """Linear in what is there and in what is added, both together."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        assert isinstance(op, graph.ScatterAddOp)
        there, _, added = tangents
        if added is None:
            return [there]
        return [o(graph.ScatterAddOp, made_good(o, there, op.x), op.indices, added)]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, graph.ScatterAddOp)
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None, None]
        added = o(graph.GatherOp, cotangent, op.indices, axis=0) if wanted[2] else None
        return [cotangent if wanted[0] else None, None, added]


def _ungather(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, GatherBase)
    if 0 in o.shape(ct):
        return zeros(o, op.data)
    return scattered(o, ct, op.indices, op.axis.value.data, o.shape(op.data))


def scattered_elements(
    o: Builder, ct: SSAValue, indices: SSAValue, axis: int, shape: Sequence[int]
) -> SSAValue:
    """The transpose of a gather of elements along `axis` of `shape`."""
    have, extent = list(o.shape(ct)), shape[axis]
    grown = [*have[:axis], 1, *have[axis:]]
    picked = o.reshape(within(o, indices, extent), grown)
    places = np.arange(extent).reshape([-1, *[1] * (len(grown) - 1 - axis)])
    hit = o.compare(picked, o.constant(places), "eq")
    return o.reduce(o.where(hit, o.reshape(ct, grown), o.like(0, ct)), "sum", [axis + 1])


def _ungather_elements(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, GatherElementsBase)
    if 0 in o.shape(ct):
        return zeros(o, op.data)
    return scattered_elements(o, ct, op.indices, op.axis.value.data, o.shape(op.data))


RULES: Rules = {
    graph.ConcatOp: _Concat(),
    graph.ExpandOp: Linear({0: _narrowed}, {0: _widened}),
    graph.GatherElementsOp: Linear({0: _ungather_elements}),
    graph.GatherOp: Linear({0: _ungather}),
    graph.PadOp: Linear({0: _unpad}, {0: _pad}),
    graph.ReshapeOp: Linear({0: _reshaped_back}),
    graph.ScatterAddOp: _ScatterAdd(),
    graph.SliceOp: Linear({0: _unslice}),
    graph.TransposeOp: Linear({0: _transposed_back}),
}
