"""NumPy's reductions and running sums, in the type that they compute in (`dtype=` or NumPy's own choice)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops

Reduction = Callable[..., Any]
"""A function of an `Ops`, a value, the axes (none of them negative) and whether they stay with extent 1."""


def _kind(kind: str) -> Reduction:
    def reduction(o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
        return o.reduce(x, kind, axes, keepdims)

    return reduction


def any_of(o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """Whether one element is not 0."""
    return o.reduce(o.truth(x), "max", axes, keepdims)


def all_of(o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """Whether no element is 0."""
    return o.reduce(o.truth(x), "min", axes, keepdims)


def count_nonzero(o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """How many elements are not 0, as int64."""
    return o.reduce(o.cast(o.truth(x), np.int64), "sum", axes, keepdims)


def variance(
    o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False, ddof: float = 0
) -> Any:
    """The mean square of what is left of floats without their mean, of n - ddof terms."""
    count = math.prod(o.shape(x)[a] for a in axes)
    left = o.sub(x, o.reduce(x, "mean", axes, keepdims=True))
    total = o.reduce(o.mul(left, left), "sum", axes, keepdims)
    return o.div(total, o.like(max(count - ddof, 0), x))


def deviation(
    o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False, ddof: float = 0
) -> Any:
    """The square root of the variance."""
    return o(graph.SqrtOp, variance(o, x, axes, keepdims, ddof))


def spread(o: Ops[Any], x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """The largest less the smallest."""
    return o.sub(o.reduce(x, "max", axes, keepdims), o.reduce(x, "min", axes, keepdims))


REDUCTIONS: dict[str, Reduction] = {
    "all": all_of,
    "any": any_of,
    "count_nonzero": count_nonzero,
    "max": _kind("max"),
    "mean": _kind("mean"),
    "min": _kind("min"),
    "prod": _kind("prod"),
    "ptp": spread,
    "std": deviation,
    "sum": _kind("sum"),
    "var": variance,
}
"""By NumPy's name. `mean`, `std` and `var` are of floats: NumPy casts integers to float64 before. `std` and
`var` take `ddof`."""


def argmax(o: Ops[Any], x: Any, axis: int, keepdims: bool = False) -> Any:
    """Where the first of the largest elements is, as int64; a NaN is the largest."""
    return o(graph.ArgmaxOp, x, axis=axis, keepdims=keepdims)


def argmin(o: Ops[Any], x: Any, axis: int, keepdims: bool = False) -> Any:
    """Where the first of the smallest elements is, as int64; a NaN is taken for the smallest."""
    # Both turn the order round, and neither overflows.
    turned = o(graph.NegOp if o.is_float(x) else graph.NotOp, x)
    return argmax(o, turned, axis, keepdims)


def cumsum(o: Ops[Any], x: Any, axis: int) -> Any:
    """Sums of all elements up to each one."""
    return o(graph.CumSumOp, x, axis=axis, exclusive=False, reverse=False)


def cumprod(o: Ops[Any], x: Any, axis: int) -> Any:
    """Products of all elements up to each one, in log2(n) steps."""
    extent, distance = o.shape(x)[axis], 1
    while distance < extent:
        low = [distance if d == axis else 0 for d in range(len(o.shape(x)))]
        moved = o(graph.PadOp, x, low=low, high=[0] * len(low), value=1.0)
        x = o.mul(o.cut(moved, axis, 0, extent), x)
        distance *= 2
    return x


def sort(o: Ops[Any], x: Any, axis: int) -> Any:
    """Elements in ascending order, NaN last: n comparisons an element."""
    return (
        o(graph.GatherElementsOp, x, argsort(o, x, axis), axis=axis) if 0 not in o.shape(x) else x
    )


def argsort(o: Ops[Any], x: Any, axis: int) -> Any:
    """Where the elements in ascending order are, as int64; stable."""
    shape = o.shape(x)
    if 0 in shape:
        return o.constant(np.zeros(shape, np.int64))
    return o.pair(graph.TopKOp, x, k=shape[axis], axis=axis, largest=False)[1]
