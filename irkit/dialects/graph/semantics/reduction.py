"""Meaning of reductions and normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import divide
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.types import ints
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
    return power / np.expand_dims(fold(np.add, power, (axis,)), axis)


def fold(function: np.ufunc, x: Array, axes: Sequence[int]) -> Array:
    """Left fold of `function` over `axes` in row-major order; those axes must not be empty."""
    axes = sorted(axes)
    if not axes:
        return x
    kept = [s for d, s in enumerate(x.shape) if d not in axes]
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(math.prod(x.shape[d] for d in axes), *kept)
    if len(rows) > math.prod(kept):
        # `reduce` adds pairwise; `accumulate` goes in order.
        return function.accumulate(rows, axis=0, dtype=x.dtype)[-1]
    total = rows[0]
    for row in rows[1:]:
        total = function(total, row)
    return total


_FOLDS: dict[str, np.ufunc] = {
    "sum": np.add,
    "mean": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
}


def _reduce(op: graph.ReduceOp, x: Array) -> Array:
    axes, kind = ints(op.axes), op.kind.data
    y = fold(_FOLDS[kind], x, axes)
    if kind == "mean":
        y = divide(y, x.dtype.type(math.prod(x.shape[d] for d in axes)))
    return np.expand_dims(y, tuple(axes)) if op.keepdims.value.data else y


def _argmax(op: graph.ArgmaxOp, x: Array) -> Array:
    return x.argmax(axis=op.axis.value.data, keepdims=bool(op.keepdims.value.data))


RULES: Rules = {
    graph.ArgmaxOp: _argmax,
    graph.BatchNormOp: _batch_norm,
    graph.ReduceOp: _reduce,
    graph.SoftmaxOp: _softmax,
}
