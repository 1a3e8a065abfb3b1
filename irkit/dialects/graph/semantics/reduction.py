"""Meaning of reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import divide
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.types import ints
from irkit.weights import Array


def fold(function: np.ufunc, x: Array, axes: Sequence[int]) -> Array:
    """Left fold of `function` over `axes` in row-major order; of nothing, its neutral element."""
    axes = sorted(axes)
    if not axes:
        return x
    kept = [s for d, s in enumerate(x.shape) if d not in axes]
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(math.prod(x.shape[d] for d in axes), *kept)
    if not len(rows):
        return np.full(kept, _neutral(function, x.dtype), x.dtype)
    if len(rows) > math.prod(kept):
        # `reduce` adds pairwise; `accumulate` goes in order.
        return function.accumulate(rows, axis=0, dtype=x.dtype)[-1]
    total = rows[0]
    for row in rows[1:]:
        total = function(total, row)
    return total


def _neutral(function: np.ufunc, dtype: np.dtype[Any]) -> Any:
    if function.identity is not None:
        return function.identity
    largest = function is np.minimum
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    if dtype.kind == "b":
        return largest
    return np.iinfo(dtype).max if largest else np.iinfo(dtype).min


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


def _cumsum(op: graph.CumSumOp, x: Array) -> Array:
    x = np.moveaxis(x, op.axis.value.data, 0)
    if op.reverse.value.data:
        x = x[::-1]
    y = np.add.accumulate(x, axis=0, dtype=x.dtype)
    if op.exclusive.value.data:
        y = np.concatenate([np.zeros_like(y[:1]), y[:-1]])
    if op.reverse.value.data:
        y = y[::-1]
    return np.moveaxis(y, 0, op.axis.value.data)


def _top_k(op: graph.TopKOp, x: Array) -> tuple[Array, Array]:
    axis, size = op.axis.value.data, x.shape[op.axis.value.data]
    # NumPy's stable sort puts NaN last; mirrored, equal elements keep their order from the other end.
    if op.largest.value.data:
        order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    order = np.take(order, np.arange(op.k.value.data), axis=axis)
    return np.take_along_axis(x, order, axis), order


RULES: Rules = {
    graph.ArgmaxOp: _argmax,
    graph.CumSumOp: _cumsum,
    graph.ReduceOp: _reduce,
    graph.TopKOp: _top_k,
}
