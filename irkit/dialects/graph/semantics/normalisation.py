"""Meaning of normalisation."""

from __future__ import annotations

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.reduction import add, fold
from irkit.dialects.graph.semantics.rule import Rules
from irkit.weights import Array


def _batch_norm(
    op: graph.BatchNormOp, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> Array:
    shape = (-1, *(1,) * (x.ndim - 2))
    deviation = np.sqrt(variance + variance.dtype.type(op.epsilon.value.data))
    y = (x - mean.reshape(shape)) / deviation.reshape(shape)
    return y * scale.reshape(shape) + bias.reshape(shape)


def _softmax(op: graph.SoftmaxOp, x: Array) -> Array:
    axis = op.axis.value.data
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return power / np.expand_dims(fold(add, power, (axis,)), axis)


def _lrn(op: graph.LrnOp, x: Array) -> Array:
    size, kind = op.size.value.data, x.dtype.type
    before = (size - 1) // 2
    widths = [(0, 0), (before, size - 1 - before), *((0, 0),) * (x.ndim - 2)]
    squares = np.pad(x * x, widths)
    channels = x.shape[1]
    total = np.zeros_like(x)
    for tap in range(size):
        total = total + squares[:, tap : tap + channels]
    base = kind(op.bias.value.data) + kind(op.alpha.value.data / size) * total
    return x / base ** kind(op.beta.value.data)


RULES: Rules = {
    graph.BatchNormOp: _batch_norm,
    graph.LrnOp: _lrn,
    graph.SoftmaxOp: _softmax,
}
