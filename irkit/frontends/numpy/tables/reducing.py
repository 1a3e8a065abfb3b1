"""Reductions of series: missing elements are left out, as pandas does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.tables.unlike import Unlike


def _there(x: Any) -> Any:
    """How many elements are not missing, as a float."""
    return LIBRARY.sum(~LIBRARY.isnan(x)).astype(np.float64)


def _filled(x: Any, value: float) -> Any:
    return LIBRARY.where(LIBRARY.isnan(x), np.array(value, x.dtype)[()], x)


def _number(x: Any) -> Any:
    """An array of no dimensions as one of NumPy's numbers."""
    return x[()]


def total(x: Any) -> Any:
    """`sum`."""
    return LIBRARY.sum(_filled(x, 0.0)) if x.dtype.kind == "f" else LIBRARY.sum(x)


def product(x: Any) -> Any:
    """`prod`."""
    return LIBRARY.prod(_filled(x, 1.0)) if x.dtype.kind == "f" else LIBRARY.prod(x)


def mean(x: Any) -> Any:
    """`mean`: of nothing it is missing."""
    if x.dtype.kind != "f":
        return LIBRARY.mean(x)
    return (total(x) / _there(x).astype(x.dtype)).astype(x.dtype)


def count(x: Any) -> Any:
    """`count`."""
    if x.dtype.kind != "f":
        return np.int64(x.size)
    return LIBRARY.sum(~LIBRARY.isnan(x))


def least(x: Any) -> Any:
    """`min`."""
    return _extreme(x, LIBRARY.min, math.inf)


def greatest(x: Any) -> Any:
    """`max`."""
    return _extreme(x, LIBRARY.max, -math.inf)


def _extreme(x: Any, of: Callable[..., Any], none: float) -> Any:
    if x.dtype.kind != "f":
        return of(x)
    found = of(_filled(x, none))
    missing = LIBRARY.all(LIBRARY.isnan(x))
    return _number(LIBRARY.where(missing, np.array(math.nan, x.dtype)[()], found))


def variance(x: Any, ddof: int = 1) -> Any:
    """`var`, of squares of distances from the mean."""
    wide = x.astype(np.float64)
    there = _there(wide)
    distances = LIBRARY.where(LIBRARY.isnan(wide), 0.0, wide - total(wide) / there)
    found = LIBRARY.sum(distances * distances) / (there - ddof)
    found = _number(LIBRARY.where(there > ddof, found, math.nan))
    return found.astype(x.dtype) if x.dtype.kind == "f" else found


def deviation(x: Any, ddof: int = 1) -> Any:
    """`std`."""
    return LIBRARY.sqrt(variance(x, ddof))


def some(x: Any) -> Any:
    """`any`."""
    return _truth(x, LIBRARY.any)


def every(x: Any) -> Any:
    """`all`."""
    return _truth(x, LIBRARY.all)


def _truth(x: Any, of: Callable[..., Any]) -> Any:
    if x.dtype.kind == "f":
        raise Unlike
    return of(x)


REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "all": every,
    "any": some,
    "count": count,
    "max": greatest,
    "mean": mean,
    "min": least,
    "prod": product,
    "std": deviation,
    "sum": total,
    "var": variance,
}


def _method(
    of: Callable[..., Any], series: Any, axis: Any = 0, skipna: bool = True, **rest: Any
) -> Any:
    """Raises Unlike for an empty series, and options that say more."""
    ddof = rest.pop("ddof", None)
    if rest or axis not in (0, None) or skipna is not True or series.size == 0:
        raise Unlike
    if ddof is None:
        return of(series.array)
    if of not in (variance, deviation) or type(ddof) is not int:
        raise Unlike
    return of(series.array, ddof)


METHODS: Mapping[str, Callable[..., Any]] = {n: partial(_method, f) for n, f in REDUCTIONS.items()}
"""Name of a method → the reduction of a traced series."""
