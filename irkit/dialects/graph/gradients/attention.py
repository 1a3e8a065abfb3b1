"""Gradients of attention: ops of their own, that make its weights anew; in forward mode what it is composed of.

Where what is added to the scores is differentiated too, its gradient is written out. Of 16-bit floats all is
of float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.linear import swapped
from irkit.dialects.graph.gradients.rule import (
    Builder,
    Composed,
    Maybe,
    Rule,
    Rules,
    total,
    unbroadcast,
)
from irkit.dialects.types import is_half, tensor_type
from irkit.errors import UnsupportedError

Attended = graph.AttentionOp | graph.AttentionQueryGradientOp | graph.AttentionKeyGradientOp


def scores(o: Builder, op: Attended, query: SSAValue, key: SSAValue) -> SSAValue:
    """scale · query · keyᵀ + mask, -inf where a key is not seen."""
    kind = o.dtype(query)
    scaled = o.mul(query, o.like(op.factor, query))
    found = o(graph.MatmulOp, scaled, swapped(o, key))
    hidden = o.like(-np.inf, found)
    if op.mask is not None:
        chosen = o.dtype(op.mask) == np.bool_
        mask = op.mask if chosen else o.cast(op.mask, kind)
        found = o.where(mask, found, hidden) if chosen else o.add(found, mask)
    if op.diagonal is not None:
        seen = np.tri(*o.shape(found)[-2:], k=op.diagonal, dtype=bool)
        found = o.where(o.constant(seen), found, hidden)
    return found


def softmax(o: Builder, found: SSAValue) -> SSAValue:
    """Of scores, along the keys."""
    return o(graph.SoftmaxOp, found, axis=len(o.shape(found)) - 1)


def along_keys(o: Builder, x: SSAValue) -> SSAValue:
    """The sum along the keys, which stay as 1."""
    return o.reduce(x, "sum", [len(o.shape(x)) - 1], keepdims=True)


def _wide(o: Builder, op: graph.AttentionOp) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Queries, keys and values; of 16-bit floats as float32."""
    kind = o.dtype(op.query)
    if is_half(tensor_type(op.query).element_type):
        kind = np.dtype(np.float32)
    query, key, value = (o.cast(v, kind) for v in (op.query, op.key, op.value))
    return query, key, value


def attention(o: Builder, op: graph.AttentionOp) -> SSAValue:
    """softmax(scale · query · keyᵀ + mask) · value"""
    query, key, value = _wide(o, op)
    weights = softmax(o, scores(o, op, query, key))
    return o.cast(o(graph.MatmulOp, weights, value), o.dtype(op.query))


def query_gradient(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """scale · (P ∘ (T - d)) · key, the logarithm of the sum of weights, and d"""
    assert isinstance(op, graph.AttentionQueryGradientOp)
    found = scores(o, op, op.query, op.key)
    axis = len(o.shape(found)) - 1
    weights = softmax(o, found)
    slopes = o(graph.MatmulOp, op.cotangent, swapped(o, op.value))
    along = along_keys(o, o.mul(weights, slopes))
    top = o.reduce(found, "max", [axis], keepdims=True)
    power = o(graph.ExpOp, o.sub(found, top))
    sums = o.add(top, o(graph.LogOp, along_keys(o, power)))
    product = o(graph.MatmulOp, o.mul(weights, o.sub(slopes, along)), op.key)
    gradient = o.mul(product, o.like(op.factor, product))
    return [o(graph.ConcatOp, gradient, sums, along, axis=axis)]


def key_gradient(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """scale · (P ∘ (T - d))ᵀ · query, and Pᵀ · cotangent"""
    assert isinstance(op, graph.AttentionKeyGradientOp)
    found = scores(o, op, op.query, op.key)
    axis, size = len(o.shape(found)) - 1, o.shape(op.query)[-1]
    weights = o(graph.ExpOp, o.sub(found, o.cut(op.sums, axis, size, 1)))
    slopes = o(graph.MatmulOp, op.cotangent, swapped(o, op.value))
    slopes = o.mul(weights, o.sub(slopes, o.cut(op.sums, axis, size + 1, 1)))
    keys = o(graph.MatmulOp, swapped(o, slopes), op.query)
    values = o(graph.MatmulOp, swapped(o, weights), op.cotangent)
    lead = np.broadcast_shapes(o.shape(keys)[:-1], o.shape(values)[:-1])
    keys = o.mul(keys, o.like(op.factor, keys))
    both = [o.expand(v, [*lead, o.shape(v)[-1]]) for v in (keys, values)]
    return [o(graph.ConcatOp, *both, axis=axis)]


class AttentionRule(Rule):
    """The ops of `graph.attention`'s gradients backward, its parts forward."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        """P · value' + (P ∘ (S' - sum of P ∘ S')) · value"""
        assert isinstance(op, graph.AttentionOp)
        _refuse_parts(op)
        query, key, value = _wide(o, op)
        kind = o.dtype(query)
        changed = [None if t is None else o.cast(t, kind) for t in tangents]
        weights = softmax(o, scores(o, op, query, key))
        moved: Maybe = None
        if (t := changed[0]) is not None:
            moved = o(graph.MatmulOp, t, swapped(o, key))
        if (t := changed[1]) is not None:
            moved = total(o, moved, o(graph.MatmulOp, query, swapped(o, t)))
        if moved is not None:
            moved = o.mul(moved, o.like(op.factor, moved))
        if op.mask is not None and (t := changed[3]) is not None:
            moved = total(o, moved, o.expand(t, o.shape(weights)))
        result: Maybe = None
        if moved is not None:
            left = o.sub(moved, along_keys(o, o.mul(weights, moved)))
            result = o(graph.MatmulOp, o.mul(weights, left), value)
        if (t := changed[2]) is not None:
            result = total(o, result, o(graph.MatmulOp, weights, t))
        if result is None:
            return [None]
        return [o.cast(o.expand(result, o.shape(op.y)), o.dtype(op.query))]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, graph.AttentionOp)
        _refuse_parts(op)
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(wanted)
        found = _pulled(o, op, cotangent, wanted)
        return [
            None if g is None or not asked else o.cast(unbroadcast(o, g, o.shape(v)), o.dtype(v))
            for g, asked, v in zip(found, wanted, op.operands, strict=True)
        ]


def _pulled(
    o: Builder, op: graph.AttentionOp, cotangent: SSAValue, wanted: Sequence[bool]
) -> list[Maybe]:
    """Gradients of the operands, of all leading dimensions."""
    query, key, value = _wide(o, op)
    cotangent = o.cast(cotangent, o.dtype(query))
    mask = [] if op.mask is None else [op.mask]
    if mask and o.dtype(mask[0]).kind != "b":
        mask = [o.cast(mask[0], o.dtype(query))]
    props = {n: p for n, p in op.properties.items() if n in ("scale", "causal")}
    read = [query, key, value, cotangent]
    size, axis = o.shape(query)[-1], len(o.shape(query)) - 1
    sums = o(graph.AttentionQueryGradientOp, *read, *mask, **props)
    found: list[Maybe] = [o.cut(sums, axis, 0, size), None, None, *[None] * len(mask)]
    if wanted[1] or wanted[2]:
        both = o(graph.AttentionKeyGradientOp, *read, sums, *mask, **props)
        found[1] = o.cut(both, axis, 0, size)
        found[2] = o.cut(both, axis, size, o.shape(value)[-1])
    if mask and wanted[3]:
        weights = softmax(o, scores(o, op, query, key))
        slopes = o(graph.MatmulOp, cotangent, swapped(o, value))
        slopes = o.mul(weights, o.sub(slopes, o.cut(sums, axis, size + 1, 1)))
        found[3] = slopes
    return found


def _refuse_parts(op: graph.AttentionOp) -> None:
    """Raises UnsupportedError."""
    if op.parts is not None:
        raise UnsupportedError(
            "'graph.attention' is not differentiable: its keys are cut into parts"
        )


RULES: Rules = {
    graph.AttentionKeyGradientOp: Composed(key_gradient),
    graph.AttentionOp: AttentionRule(),
    graph.AttentionQueryGradientOp: Composed(query_gradient),
}
