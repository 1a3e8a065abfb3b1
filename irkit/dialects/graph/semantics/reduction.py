"""Meaning of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.extremes import greatest, least
from irkit.dialects.graph.semantics.elementwise import divide, maximum, minimum
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.types import ints
from irkit.weights import Array


@dataclass(frozen=True)
class Combine:
    """What a reduction does with two values, and what it gives for none, by their type."""

    function: Callable[[Array, Array], Array]
    of_none: Callable[[np.dtype[Any]], float]
    ordered: np.ufunc | None = None
    """The function as NumPy accumulates it in order; None if any order of pairs gives the same."""


add = Combine(np.add, lambda _: 0, np.add)
largest = Combine(maximum, least)
_KINDS: dict[str, Combine] = {
    "sum": add,
    "mean": add,
    "max": largest,
    "min": Combine(minimum, greatest),
    "prod": Combine(np.multiply, lambda _: 1, np.multiply),
}


def fold(combine: Combine, x: Array, axes: Sequence[int]) -> Array:
    """Left fold over `axes` in row-major order, from its value of none on; of no axes, `x`."""
    axes = sorted(axes)
    if not axes:
        return x
    kept = [s for d, s in enumerate(x.shape) if d not in axes]
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(math.prod(x.shape[d] for d in axes), *kept)
    total: Array = np.full(kept, combine.of_none(x.dtype), x.dtype)
    if not len(rows):
        return total
    if combine.ordered is None:
        return combine.function(total, _in_pairs(combine.function, rows))
    if len(rows) > math.prod(kept):
        # `reduce` adds pairwise; `accumulate` goes in order.
        return combine.function(total, combine.ordered.accumulate(rows, axis=0, dtype=x.dtype)[-1])
    for row in rows:
        total = combine.function(total, row)
    return total


def _in_pairs(function: Callable[[Array, Array], Array], rows: Array) -> Array:
    """All rows combined, neighbours first, so that which of them is the last stays what it is."""
    while len(rows) > 1:
        even = len(rows) // 2 * 2
        rows = np.concatenate([function(rows[:even:2], rows[1:even:2]), rows[even:]])
    return rows[0]


def _reduce(op: graph.ReduceOp, x: Array) -> Array:
    axes, kind = ints(op.axes), op.kind.data
    y = _mean(x, axes) if kind == "mean" else fold(_KINDS[kind], x, axes)
    return np.expand_dims(y, tuple(axes)) if op.keepdims.value.data else y


def _mean(x: Array, axes: Sequence[int]) -> Array:
    count = math.prod(x.shape[d] for d in axes)
    if x.dtype.kind != "f":
        wide = x.astype(np.int64 if x.dtype.kind == "i" else np.uint64)
        return divide(fold(add, wide, axes), np.array(count, wide.dtype)).astype(x.dtype)
    return fold(add, x, axes) / x.dtype.type(count)


def _argmax(op: graph.ArgmaxOp, x: Array) -> Array:
    return x.argmax(axis=op.axis.value.data, keepdims=bool(op.keepdims.value.data))


def _cumsum(op: graph.CumSumOp, x: Array) -> Array:
    x = np.moveaxis(x, op.axis.value.data, 0)
    if op.reverse.value.data:
        x = x[::-1]
    if op.exclusive.value.data:
        x = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
    y = np.add.accumulate(x, axis=0, dtype=x.dtype)
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
