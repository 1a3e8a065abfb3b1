"""`np.histogram` over bins of one width: NumPy's own result, to the bit, in one pass of machine code."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.structures import ArrayType

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 65536
"""NumPy counts so many elements at once: sums of weights are rounded as it rounds them. Fewer than one block
are NumPy's to count."""
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
    edges: Array = np.histogram_bin_edges(values, bins, limits)
    values = values.astype(edges.dtype, copy=False)
    # What bins are estimated in is what NumPy estimates them in; edges then correct them by one.
    width: Any = edges[-1] - edges[0]
    if limits is not None and limits[0] != limits[1]:
        width = np.float64(limits[1]) - np.float64(limits[0])
    number = width.dtype.type(bins)
    if weights is None:
        counts = np.zeros(bins, np.intp)
        _counting()(values, edges, width, number, counts)
        return counts, edges
    found = np.zeros(bins, weights.dtype)
    flat = np.ascontiguousarray(weights).reshape(-1)
    for begin in range(0, len(values), BLOCK):
        sums = np.zeros(bins)
        part = slice(begin, begin + BLOCK)
        _weighing()(values[part], flat[part], edges, width, number, sums)
        found += sums.astype(weights.dtype)
    return found, edges


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
