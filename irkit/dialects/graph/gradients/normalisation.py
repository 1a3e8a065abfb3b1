"""Gradients of normalisations.

Those of a softmax and of a layer normalisation are symmetric maps of their results; the others are what they are
composed of.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import Builder, Composed, Rules, SelfAdjoint
from irkit.dialects.graph.gradients.shape import padded


def _softmax(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    """diag(y) - y yᵀ"""
    assert isinstance(op, graph.SoftmaxOp)
    weighted = o.reduce(o.mul(t, op.y), "sum", [op.axis.value.data], keepdims=True)
    return o.mul(op.y, o.sub(t, weighted))


def _layer_norm(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    """(I - y yᵀ / n) / σ, of what is left without its mean where the op is centred."""
    assert isinstance(op, graph.LayerNormOp)
    last = [len(o.shape(op.x)) - 1]

    def mean(x: SSAValue) -> SSAValue:
        return o.reduce(x, "mean", last, keepdims=True)

    d = o.sub(op.x, mean(op.x)) if op.is_centred else op.x
    variance = o.add(mean(o.mul(d, d)), o.like(op.raised_by, op.x))
    along = o.mul(op.y, mean(o.mul(t, op.y)))
    left = o.sub(t, along)
    if op.is_centred:
        left = o.sub(left, mean(t))
    return o.div(left, o(graph.SqrtOp, variance))


def batch_norm(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias"""
    assert isinstance(op, graph.BatchNormOp)
    shape = [o.shape(op.scale)[0], *[1] * (len(o.shape(op.x)) - 2)]
    scale, bias, mean, variance = (
        o.reshape(v, shape) for v in (op.scale, op.bias, op.mean, op.variance)
    )
    deviation = o(graph.SqrtOp, o.add(variance, o.like(op.epsilon.value.data, variance)))
    y = o.div(o.sub(op.x, mean), deviation)
    return [o.add(o.mul(y, scale), bias)]


def lrn(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """x / (bias + alpha / size * sum of squares of neighbours)^beta"""
    assert isinstance(op, graph.LrnOp)
    size, shape = op.size.value.data, o.shape(op.x)
    low, high = [0] * len(shape), [0] * len(shape)
    low[1], high[1] = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = padded(o, o.mul(op.x, op.x), low, high)
    total = o.cut(squares, 1, 0, shape[1])
    for tap in range(1, size):
        total = o.add(total, o.cut(squares, 1, tap, shape[1]))
    scaled = o.mul(total, o.like(op.alpha.value.data / size, op.x))
    base = o.add(scaled, o.like(op.bias.value.data, op.x))
    return [o.div(op.x, o(graph.PowOp, base, o.like(op.beta.value.data, op.x)))]


RULES: Rules = {
    graph.BatchNormOp: Composed(batch_norm),
    graph.LayerNormOp: SelfAdjoint(_layer_norm),
    graph.LrnOp: Composed(lrn),
    graph.SoftmaxOp: SelfAdjoint(_softmax),
}
