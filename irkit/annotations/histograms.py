"""`np.histogram` over bins of one width: NumPy's own result, to the bit, counted in parts by threads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.structures import ArrayType
from irkit.annotations.workers import in_parts, ranges
from irkit.processors import usable_cores

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 65536
"""NumPy counts so many elements at once: sums of weights are rounded as it rounds them. Fewer than one block
are NumPy's to count."""
SUMS = 1 << 19
"""Sums of blocks that are computed before they are added up."""
WIDE = ("float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32")


def histogram_annotation(a: Any, bins: Any, limits: Any, weights: Any) -> Annotation | None:
    """That of `histogram` where it gives what NumPy does: for whole numbers of bins, and limits, if any, of
    Python's numbers. None for other arguments. Arrays are anything that has a dtype and a shape."""
    plain = limits is None or (isinstance(limits, tuple) and _numbers(cast("tuple[Any]", limits)))
    alike = weights is None or (weights.shape == a.shape and weights.dtype.kind in "biuf")
    if type(bins) is not int or not 0 < bins < 1 << 20 or not plain or not alike:
        return None
    return HISTOGRAM if a.dtype.name in WIDE and a.size else None


def _numbers(limits: Sequence[Any]) -> bool:
    return all(type(x) in (int, float) for x in limits)


def histogram(a: Array, bins: int, limits: Any, weights: Array | None) -> tuple[Array, Array]:
    """`np.histogram(a, bins, limits, weights=weights)`: counts or sums of weights, and edges of the bins.
    Raises what it raises."""
    if a.size < BLOCK:
        return np.histogram(a, bins, limits, weights=weights)
    values = np.ascontiguousarray(a).reshape(-1)
    edges = _edges(values, bins, limits)
    values = values.astype(edges.dtype, copy=False)
    # What bins are estimated in is what NumPy estimates them in; edges then correct them by one.
    width: Any = edges[-1] - edges[0]
    if limits is not None and limits[0] != limits[1]:
        width = np.float64(limits[1]) - np.float64(limits[0])
    bins_of = _Bins(edges, width, width.dtype.type(bins))
    if weights is None:
        return _counted(values, bins_of), edges
    return _weighed(values, np.ascontiguousarray(weights).reshape(-1), bins_of), edges


class _Bins(NamedTuple):
    """Where bins lie: their edges, the width of all, and how many there are, as a number to divide by."""

    edges: Array
    width: Any
    number: Any

    def __len__(self) -> int:
        return len(self.edges) - 1


def _edges(values: Array, bins: int, limits: Any) -> Array:
    """NumPy's edges, which of the values need the least and the largest alone."""
    cuts = ranges(len(values), values.itemsize, 1)
    if limits is not None:
        return np.histogram_bin_edges(values[:1], bins, limits)
    found = np.empty((len(cuts), 2), values.dtype)
    places = {cut: n for n, cut in enumerate(cuts)}

    def look(start: int, stop: int) -> None:
        part = values[start:stop]
        found[places[start, stop]] = part.min(), part.max()

    in_parts(look, cuts)
    return np.histogram_bin_edges(found, bins)


def _counted(values: Array, bins: _Bins) -> Array:
    """Counts of parts of the values, which are whole numbers, in any order."""
    cuts = ranges(len(values), values.itemsize, 1)
    if len(cuts) * len(bins) > len(values):
        cuts = [(0, len(values))]
    counts = np.zeros((len(cuts), len(bins)), np.intp)
    places = {cut: n for n, cut in enumerate(cuts)}

    def count(start: int, stop: int) -> None:
        _counting()(values[start:stop], *bins, counts[places[start, stop]])

    in_parts(count, cuts)
    return counts.sum(axis=0)


def _weighed(values: Array, weights: Array, bins: _Bins) -> Array:
    """Sums of each block's weights, some blocks at once, added in the blocks' order."""
    found, blocks = np.zeros(len(bins), weights.dtype), -(-len(values) // BLOCK)
    together = min(blocks, max(1, SUMS // len(bins)))
    sums = np.empty((together, len(bins)))
    for first in range(0, blocks, together):

        def weigh(start: int, stop: int, first: int = first) -> None:
            for n in range(start, stop):
                part = slice((first + n) * BLOCK, (first + n + 1) * BLOCK)
                sums[n] = 0
                _weighing()(values[part], weights[part], *bins, sums[n])

        count = min(together, blocks - first)
        each = -(-count // usable_cores())
        in_parts(weigh, [(n, min(n + each, count)) for n in range(0, count, each)])
        for n in range(count):
            found += sums[n].astype(weights.dtype)
    return found


@functools.cache
def _bin() -> Any:
    """In which bin a value is; -1 for one that is in none."""

    def place(x: Any, edges: Any, width: Any, number: Any) -> Any:
        last = len(edges) - 2
        if not (x >= edges[0] and x <= edges[last + 1]):
            return -1
        k = int((x - edges[0]) / width * number)
        if k > last:
            k = last
        if x < edges[k]:
            k -= 1
        if x >= edges[k + 1] and k != last:
            k += 1
        return k

    return _compiled(place)


@functools.cache
def _counting() -> Any:
    place = _bin()

    def count(values: Any, edges: Any, width: Any, number: Any, counts: Any) -> None:
        for value in values:
            k = place(value, edges, width, number)
            if k >= 0:
                counts[k] += 1

    return _compiled(count)


@functools.cache
def _weighing() -> Any:
    place = _bin()

    def weigh(values: Any, weights: Any, edges: Any, width: Any, number: Any, sums: Any) -> None:
        for n in range(len(values)):
            k = place(values[n], edges, width, number)
            if k >= 0:
                sums[k] += weights[n]

    return _compiled(weigh)


def _compiled(function: Any) -> Any:
    from numba import njit

    return cast(Any, njit)(nogil=True)(function)


def _types(a: Any, bins: int, limits: Any, weights: Any) -> tuple[ArrayType, ArrayType]:
    """Of the results."""
    counts = np.dtype(np.intp) if weights is None else weights.dtype
    edges = np.dtype(np.float64) if a.dtype.kind in "iu" else a.dtype
    return ArrayType((bins,), counts), ArrayType((bins + 1,), edges)


HISTOGRAM = Annotation(
    histogram,
    ("a", "bins", "limits", "weights"),
    writes=(),
    result=_types,
    why="counted by irkit's own code",
    title="numpy.histogram",
)
