"""Meaning of pooling."""

from __future__ import annotations

import math

import numpy as np

from irkit.dialects import graph
from irkit.dialects.extremes import least
from irkit.dialects.graph.pooling import PoolOp, windows_of
from irkit.dialects.graph.semantics.convolution import sliding
from irkit.dialects.graph.semantics.reduction import add, fold, largest
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.types import ints
from irkit.weights import Array


def _windows(op: PoolOp, x: Array, fill: float) -> Array:
    # Of the array, as the type may not say how large it is.
    where = windows_of(x.shape, op.properties)
    views = sliding(
        x, where.kernel, where.strides, where.dilations, where.before, where.reach, fill
    )
    # Padding for the last window of one dimension may leave room for none, never for one more.
    return views[(slice(None), slice(None), *(slice(n) for n in where.outputs))]


def _taps(op: PoolOp) -> tuple[int, ...]:
    rank = len(ints(op.kernel_shape))
    return tuple(range(2 + rank, 2 + 2 * rank))


def _max_pool(op: graph.MaxPoolOp, x: Array) -> Array:
    return fold(largest, _windows(op, x, least(x.dtype)), _taps(op))


def _average_pool(op: graph.AveragePoolOp, x: Array) -> Array:
    total = fold(add, _windows(op, x, 0.0), _taps(op))
    padding = bool(op.count_include_pad.value.data)
    counts = windows_of(x.shape, op.properties).counts(x.shape[2:], padding=padding)
    return total / counts.astype(x.dtype)


def _lp_pool(op: graph.LpPoolOp, x: Array) -> Array:
    p = op.p.value.data
    power = x * x if p == 2 else np.abs(x) if p == 1 else np.power(np.abs(x), x.dtype.type(p))
    total = fold(add, _windows(op, power, 0.0), _taps(op))
    return total if p == 1 else np.sqrt(total) if p == 2 else total ** x.dtype.type(1 / p)


def _max_pool_indices(op: graph.MaxPoolIndicesOp, x: Array) -> Array:
    sizes = x.shape[2:]
    order = "F" if op.column_major.value.data else "C"
    spatial = np.arange(math.prod(sizes)).reshape(sizes, order=order)
    # Of equal elements the first in row-major order wins, however positions are counted.
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * len(sizes))
    position = planes * math.prod(sizes) + spatial
    views = _windows(op, x, least(x.dtype))
    found = _windows(op, position, -1)
    flat = (*views.shape[: 2 + len(sizes)], -1)
    views, found = views.reshape(flat), found.reshape(flat)
    largest = views.max(axis=-1, keepdims=True)
    wins = ((views == largest) | (np.isnan(views))) & (found >= 0)
    return np.take_along_axis(found, wins.argmax(axis=-1)[..., None], -1)[..., 0]


def _global_average_pool(op: graph.GlobalAveragePoolOp, x: Array) -> Array:
    axes = tuple(range(2, x.ndim))
    mean = fold(add, x, axes) / x.dtype.type(math.prod(x.shape[2:]))
    return mean.reshape(*x.shape[:2], *(1,) * len(axes))


RULES: Rules = {
    graph.AveragePoolOp: _average_pool,
    graph.GlobalAveragePoolOp: _global_average_pool,
    graph.LpPoolOp: _lp_pool,
    graph.MaxPoolIndicesOp: _max_pool_indices,
    graph.MaxPoolOp: _max_pool,
}
