"""NumPy's functions that move elements: compositions of slices, concatenations and gathers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops
from irkit.weights import Array


def flip(o: Ops[Any], x: Any, axes: Sequence[int]) -> Any:
    """Backwards along axes."""
    shape = o.shape(x)
    if 0 in shape:
        return x
    offsets = [n - 1 if d in axes else 0 for d, n in enumerate(shape)]
    strides = [-1 if d in axes else 1 for d in range(len(shape))]
    return o(graph.SliceOp, x, offsets=offsets, sizes=list(shape), strides=strides)


def roll(o: Ops[Any], x: Any, shift: int, axis: int | None = None) -> Any:
    """Moved by `shift` along an axis, what falls off coming in again; without one, in C order."""
    shape = o.shape(x)
    if axis is None:
        flat = roll(o, o.reshape(x, [math.prod(shape)]), shift, 0)
        return o.reshape(flat, shape)
    extent = shape[axis]
    by = shift % extent if extent else 0
    if by == 0:
        return x
    parts = o.cut(x, axis, extent - by, by), o.cut(x, axis, 0, extent - by)
    return o(graph.ConcatOp, *parts, axis=axis)


def repeat(o: Ops[Any], x: Any, count: int, axis: int) -> Any:
    """Each element `count` times along an axis."""
    shape = o.shape(x)
    grown = o.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    wide = o.expand(grown, [*shape[: axis + 1], count, *shape[axis + 1 :]])
    return o.reshape(wide, [*shape[:axis], shape[axis] * count, *shape[axis + 1 :]])


def tile(o: Ops[Any], x: Any, counts: Sequence[int]) -> Any:
    """All of x over and over along each axis."""
    rank = max(len(counts), len(o.shape(x)))
    times = [1] * (rank - len(counts)) + list(counts)
    shape = [1] * (rank - len(o.shape(x))) + list(o.shape(x))
    grown = o.reshape(x, [s for n in shape for s in (1, n)])
    wide = o.expand(grown, [s for pair in zip(times, shape, strict=True) for s in pair])
    return o.reshape(wide, [t * n for t, n in zip(times, shape, strict=True)])


def _triangle(o: Ops[Any], x: Any, k: int) -> Any:
    """Whether each element of the last two dimensions is above diagonal k or on it."""
    rows, columns = o.shape(x)[-2:]
    down, along = np.arange(rows).reshape(-1, 1) + k, np.arange(columns).reshape(1, -1)
    return o.compare(o.constant(down), o.constant(along), "le")


def triu(o: Ops[Any], x: Any, k: int = 0) -> Any:
    """Zero below diagonal k."""
    return o.where(_triangle(o, x, k), x, o.like(0, x))


def tril(o: Ops[Any], x: Any, k: int = 0) -> Any:
    """Zero above diagonal k."""
    return o.where(_triangle(o, x, k + 1), o.like(0, x), x)


def diagonal(o: Ops[Any], x: Any, offset: int = 0) -> Any:
    """A diagonal of a matrix: every (n + 1)th of its elements in C order."""
    rows, columns = o.shape(x)
    size = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    first = -offset * columns if offset < 0 else offset
    if size == 0:
        return o.cut(o.reshape(x, [rows * columns]), 0, 0, 0)
    return o.cut(o.reshape(x, [rows * columns]), 0, first, size, columns + 1)


def trace(o: Ops[Any], x: Any, offset: int = 0) -> Any:
    """The sum of a diagonal."""
    return o.reduce(diagonal(o, x, offset), "sum", [0])


def from_the_end(o: Ops[Any], indices: Any, extent: int) -> Any:
    """Indices as int64, with those below 0 counted from the end."""
    wide = o.cast(indices, np.int64)
    return o.where(o.below(wide, 0), o.add(wide, o.like(extent, wide)), wide)


def take(o: Ops[Any], x: Any, indices: Any, axis: int) -> Any:
    """Slices along an axis. An index out of range, for which NumPy raises IndexError, takes the nearest."""
    return o(graph.GatherOp, x, from_the_end(o, indices, o.shape(x)[axis]), axis=axis)


def take_along_axis(o: Ops[Any], x: Any, indices: Any, axis: int) -> Any:
    """An element along an axis at each position of `indices`; out of range the nearest."""
    return o(graph.GatherElementsOp, x, from_the_end(o, indices, o.shape(x)[axis]), axis=axis)


def put(o: Ops[Any], x: Any, indices: Any, values: Any) -> Any:
    """x after `x[indices] = values`: of one dimension of indices into the first of x; of equal ones the last
    counts. Each element of that dimension is compared with each index; one out of range is no one's."""
    extent, (count,) = o.shape(x)[0], o.shape(indices)
    values = o.expand(values, [count, *o.shape(x)[1:]])
    if 0 in (count, extent):
        return x
    rows = o.constant(np.arange(extent).reshape(-1, 1))
    hit = o.compare(rows, o.reshape(from_the_end(o, indices, extent), [1, count]), "eq")
    number = o.where(hit, o.constant(np.arange(count).reshape(1, -1)), o.constant(np.array(-1)))
    return _chosen(o, x, o.reduce(number, "max", [1]), values)


def _chosen(o: Ops[Any], x: Any, places: Any, values: Any) -> Any:
    """Of each row the value with the number `places`, or what x has where it is below 0."""
    written = o(graph.GatherOp, values, places, axis=0)
    rest = [1] * (len(o.shape(x)) - 1)
    new = o.reshape(o.compare(places, o.like(0, places), "ge"), [o.shape(x)[0], *rest])
    return o.where(new, written, x)


COMBINED: dict[str, tuple[str, type[graph.GraphOp]]] = {
    "add": ("sum", graph.AddOp),
    "subtract": ("sum", graph.SubOp),
    "multiply": ("prod", graph.MulOp),
    "maximum": ("max", graph.MaxOp),
    "minimum": ("min", graph.MinOp),
}
"""Of NumPy's functions that have an `at` here: how what comes to one place is reduced, and joined with it."""


def combine(o: Ops[Any], kind: str, x: Any, indices: Any, values: Any) -> Any:
    """x after `np.<kind>.at(x, indices, values)`: of one dimension of indices into the first of x, each of
    which counts, however often it is there. Sums of float32 and float64 have NumPy's bits. Of all else each
    element of that dimension is compared with each index, and what comes to one place is reduced in the order
    of the indices, then joined with x: sums of shorter floats, and products, differ from NumPy's by rounding,
    and are the same in every run. Indices are in range: a check says so, or whoever calls."""
    (extent, *rest), (count,) = o.shape(x), o.shape(indices)
    if 0 in (count, extent, *rest):
        return x
    numbers = from_the_end(o, indices, extent)
    if kind in ("add", "subtract") and o.dtype(x).name in ("float32", "float64"):
        each = o.expand(values, [count, *rest])
        return o(graph.ScatterAddOp, x, numbers, each if kind == "add" else o(graph.NegOp, each))
    reduction, join = COMBINED[kind]
    rows = o.constant(np.arange(extent).reshape(-1, 1))
    hit = o.compare(rows, o.reshape(numbers, [1, count]), "eq")
    ones = [1] * len(rest)
    each = o.where(
        o.reshape(hit, [extent, count, *ones]),
        o.reshape(o.expand(values, [count, *rest]), [1, count, *rest]),
        o.constant(_identity(reduction, o.dtype(x))),
    )
    # A place that no index names keeps its bits: 0 added to -0 would be another.
    named = o.truth(o.reduce(o.cast(hit, np.uint8), "max", [1]))
    joined = o(join, x, o.reduce(each, reduction, [1]))
    return o.where(o.reshape(named, [extent, *ones]), joined, x)


def _identity(reduction: str, dtype: np.dtype[Any]) -> Array:
    """What a reduction is of nothing."""
    if reduction in ("sum", "prod"):
        return np.array(int(reduction == "prod")).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(limits.min if reduction == "max" else limits.max, dtype)
    return np.array(-np.inf if reduction == "max" else np.inf).astype(dtype)


def bincount(o: Ops[Any], x: Any, length: int) -> Any:
    """How many elements of one dimension equal each of 0 to length - 1, as int64."""
    numbers = o.constant(np.arange(length).reshape(-1, 1))
    wide = o.reshape(o.cast(x, np.int64), [1, *o.shape(x)])
    return o.reduce(o.cast(o.compare(numbers, wide, "eq"), np.int64), "sum", [1])
