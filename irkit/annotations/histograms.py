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
AT_ONCE = 1024
"""Values whose bins are looked for before these are counted."""
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
    number = width.dtype.type(bins)
    off = np.abs((edges - edges[0]) / width * number - np.arange(bins + 1)).max()
    bins_of = _Bins(edges, width, number, 2 * off + bins * np.finfo(width.dtype).eps)
    if weights is None:
        return _counted(values, bins_of), edges
    return _weighed(values, np.ascontiguousarray(weights).reshape(-1), bins_of), edges


class _Bins(NamedTuple):
    """Where bins lie: their edges, the width of all, how many there are, as a number to multiply by, and how
    far at most from a whole number of bins NumPy's estimate of an edge is."""

    edges: Array
    width: Any
    number: Any
    margin: Any

    @property
    def total(self) -> int:
        """How many bins there are."""
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
    if len(cuts) * bins.total > len(values):
        cuts = [(0, len(values))]
    counts = np.zeros((len(cuts), bins.total + 1), np.intp)
    places = {cut: n for n, cut in enumerate(cuts)}

    def count(start: int, stop: int) -> None:
        _counting()(values[start:stop], *bins, counts[places[start, stop]])

    in_parts(count, cuts)
    return counts[:, :-1].sum(axis=0)


def _weighed(values: Array, weights: Array, bins: _Bins) -> Array:
    """Sums of each block's weights, some blocks at once, added in the blocks' order."""
    found, blocks = np.zeros(bins.total, weights.dtype), -(-len(values) // BLOCK)
    together = min(blocks, max(1, SUMS // bins.total))
    sums = np.empty((together, bins.total + 1))
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
            found += sums[n, :-1].astype(weights.dtype)
    return found


@functools.cache
def _estimates() -> Any:
    """Of values, where NumPy estimates that they are, the place behind the last for what is in no bin; and
    whether all are where they are estimated: a loop without branches, computed in vectors.

    Estimates never fall while values rise. So a value is in a bin where its estimate lies between those of
    the edges of the bin, which are whole numbers but for `margin`.
    """

    def estimate(values: Any, ends: Any, width: Any, margin: Any, places: Any) -> bool:
        low, high, number = ends
        unsure, none = 0, int(number)
        for n in range(len(values)):
            x = values[n]
            inside = (x >= low) & (x <= high)
            # What is in no bin, NaN among it, has no whole number.
            place = ((x if inside else low) - low) / width * number
            k = int(place)
            above = place - k
            sure = (above > margin) & (above < 1 - margin)
            unsure |= int(inside) & (1 - int(sure))
            places[n] = k if inside else none
        return unsure == 0

    return _compiled(estimate)


@functools.cache
def _places() -> Any:
    """In which bins values are, the place behind the last for what is in none."""
    estimated = _estimates()

    def find(values: Any, edges: Any, width: Any, number: Any, margin: Any, places: Any) -> None:
        last = len(edges) - 2
        ends = edges[0], edges[last + 1], number
        if estimated(values, ends, width, margin, places):
            return
        for n in range(len(values)):
            x = values[n]
            if not (x >= edges[0] and x <= edges[last + 1]):
                continue
            k = min(places[n], last)
            if x < edges[k]:
                k -= 1
            if x >= edges[k + 1] and k != last:
                k += 1
            places[n] = k

    return _compiled(find)


@functools.cache
def _counting() -> Any:
    """Counts of a bin each, and behind them of what is in none."""
    find = _places()

    def count(values: Any, edges: Any, width: Any, number: Any, margin: Any, counts: Any) -> None:
        places = np.empty(AT_ONCE, np.intp)
        for first in range(0, len(values), AT_ONCE):
            some = values[first : first + AT_ONCE]
            find(some, edges, width, number, margin, places)
            for n in range(len(some)):
                counts[places[n]] += 1

    return _compiled(count)


@functools.cache
def _weighing() -> Any:
    """Sums of a bin's weights each, and behind them of what is in none."""
    find = _places()

    def weigh(
        values: Any, weights: Any, edges: Any, width: Any, number: Any, margin: Any, sums: Any
    ) -> None:
        places = np.empty(AT_ONCE, np.intp)
        for first in range(0, len(values), AT_ONCE):
            some, heavy = values[first : first + AT_ONCE], weights[first : first + AT_ONCE]
            find(some, edges, width, number, margin, places)
            # Of an index that is a sum the sign is looked at, which takes as long as the rest.
            for n in range(len(some)):
                sums[places[n]] += heavy[n]

    return _compiled(weigh)


def _compiled(function: Any) -> Any:
    from numba import njit

    # NumPy's divisions have no branch for a divisor of 0.
    return cast(Any, njit)(nogil=True, error_model="numpy")(function)


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
