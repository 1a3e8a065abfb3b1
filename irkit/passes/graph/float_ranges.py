"""Between which floats something holds: bisection over all of them, many columns at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from irkit.weights import Array

Holds = Callable[[Array], Array]
"""Of rows×columns of floats whether each element does: it holds on one interval of a column's numbers."""

# Somewhere in most intervals: zero, and powers of two of both signs.
_STARTS = np.concatenate([[0.0], *([s * 2.0**e] for e in range(-30, 31) for s in (1, -1))])


class Ranges(NamedTuple):
    """For each column the least and the greatest number of which something holds, whether it holds of NaN,
    and whether all this was found."""

    low: Array
    high: Array
    nan: Array
    found: Array

    @property
    def unlimited(self) -> bool:
        """Whether it holds of everything."""
        return bool(self.nan.all() and np.isinf(self.low).all() and np.isinf(self.high).all())


def holding_ranges(holds: Holds, count: int, dtype: np.dtype[Any]) -> Ranges:
    """The intervals of `count` columns of float32 or float64, by running `holds`.

    Infinity counts as a number. Where none of the numbers that a search starts from is within, `found` is
    false and everything accepted.
    """
    starts = np.broadcast_to(_STARTS.astype(dtype)[:, None], (len(_STARTS), count))
    within = holds(starts)
    found = np.asarray(within.any(axis=0))
    start = starts[within.argmax(axis=0), 0]
    low, high = (_last(holds, start, dtype.type(end)) for end in (-np.inf, np.inf))
    nan = holds(np.full((1, count), np.nan, dtype))[0]
    anything = ~found
    low, high = np.where(anything, -np.inf, low), np.where(anything, np.inf, high)
    return Ranges(low, high, nan | anything, found)


def _last(holds: Holds, start: Array, end: Any) -> Array:
    """Towards `end` from `start`, of which it holds: the last number of which it does."""
    dtype = start.dtype
    good, bad = ordinals(start), ordinals(np.full_like(start, end))
    bad = np.where(holds(np.full((1, len(start)), end, dtype))[0], good, bad)
    reaches = bad == good
    for _ in range(8 * dtype.itemsize):
        # The two are of one sign or far apart: halves are added, so that nothing overflows.
        middle = (good >> 1) + (bad >> 1) + (good & bad & 1)
        here = holds(floats(middle, dtype)[None])[0]
        good, bad = np.where(here, middle, good), np.where(here, bad, middle)
    return np.where(reaches, end, floats(good, dtype))


def ordinals(x: Array) -> Array:
    """Floats as integers in their order; both zeros are 0."""
    kind = np.int64 if x.dtype.itemsize == 8 else np.int32
    bits = x.view(kind).astype(np.int64)
    least = np.int64(np.iinfo(kind).min)
    return np.where(bits >= 0, bits, least - bits)


def floats(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """The floats of such integers."""
    kind = np.int64 if dtype.itemsize == 8 else np.int32
    least = np.int64(np.iinfo(kind).min)
    return np.where(numbers >= 0, numbers, least - numbers).astype(kind).view(dtype)
