"""Gradients of reductions and running sums.

Of several elements that are the largest or the smallest each has its share, in equal parts, as of PyTorch's `amax`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import Builder, Composed, Linear, Maybe, Rule, Rules
from irkit.dialects.graph.gradients.shape import scattered_elements
from irkit.dialects.types import ints


def _kept(o: Builder, op: graph.ReduceOp, value: SSAValue) -> SSAValue:
    """A value of the result's shape with the reduced axes as 1."""
    axes = ints(op.axes)
    return o.reshape(value, [1 if d in axes else s for d, s in enumerate(o.shape(op.x))])


def _count(o: Builder, op: graph.ReduceOp) -> int:
    return math.prod(o.shape(op.x)[a] for a in ints(op.axes))


def _repeated(o: Builder, op: graph.ReduceOp, ct: SSAValue) -> SSAValue:
    return o.expand(_kept(o, op, ct), o.shape(op.x))


def _share(o: Builder, op: graph.ReduceOp) -> SSAValue:
    """Of each element how much of the extremum it is."""
    chosen = o.cast(o.compare(op.x, _kept(o, op, op.y), "eq"), o.dtype(op.x))
    return o.div(chosen, o.reduce(chosen, "sum", ints(op.axes), keepdims=True))


class _Reduce(Rule):
    """Sums and means are linear; of an extremum each element has its share. A product is composed before."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        assert isinstance(op, graph.ReduceOp)
        (t,) = tangents
        if t is None:
            return [None]
        if op.kind.data in ("sum", "mean"):
            return [o(graph.ReduceOp, t, **op.properties)]
        keepdims = bool(op.keepdims.value.data)
        return [o.reduce(o.mul(t, _share(o, op)), "sum", ints(op.axes), keepdims)]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, graph.ReduceOp)
        (ct,) = cotangents
        if ct is None:
            return [None]
        if op.kind.data == "mean":
            ct = o.div(ct, o.like(_count(o, op), ct))
        if op.kind.data in ("sum", "mean"):
            return [_repeated(o, op, ct)]
        return [o.mul(_kept(o, op, ct), _share(o, op))]


def product_by_halves(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """A product as one of products of pairs: right where elements are zero, which a quotient is not."""
    assert isinstance(op, graph.ReduceOp)
    shape, axes = o.shape(op.x), sorted(ints(op.axes))
    kept = [d for d in range(len(shape)) if d not in axes]
    x = o.transpose(op.x, [*axes, *kept])
    x = o.reshape(x, [math.prod(shape[d] for d in axes), *(shape[d] for d in kept)])
    if o.shape(x)[0] == 0:
        return [o.constant(np.ones(o.shape(op.y), o.dtype(op.y)))]
    while (size := o.shape(x)[0]) > 1:
        half = size // 2
        pairs = o.mul(o.cut(x, 0, 0, half), o.cut(x, 0, half, half))
        x = pairs if size % 2 == 0 else o(graph.ConcatOp, pairs, o.cut(x, 0, size - 1, 1), axis=0)
    return [o.reshape(x, o.shape(op.y))]


def is_product(op: GraphOp) -> bool:
    """Whether it is a reduction by products."""
    return isinstance(op, graph.ReduceOp) and op.kind.data == "prod"


def _cumsum_back(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.CumSumOp)
    turned = not op.reverse.value.data
    exclusive = bool(op.exclusive.value.data)
    return o(graph.CumSumOp, ct, axis=op.axis.value.data, exclusive=exclusive, reverse=bool(turned))


class _TopK(Rule):
    """What is picked is moved; where it was has no gradient."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        assert isinstance(op, graph.TopKOp)
        (t,) = tangents
        if t is None:
            return [None, None]
        return [o(graph.GatherElementsOp, t, op.indices, axis=op.axis.value.data), None]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, graph.TopKOp)
        ct = cotangents[0]
        if ct is None:
            return [None]
        return [scattered_elements(o, ct, op.indices, op.axis.value.data, o.shape(op.x))]


PRODUCT = Composed(product_by_halves)

RULES: Rules = {
    graph.CumSumOp: Linear({0: _cumsum_back}),
    graph.ReduceOp: _Reduce(),
    graph.TopKOp: _TopK(),
}
