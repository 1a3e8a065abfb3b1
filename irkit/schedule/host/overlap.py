"""Whether two regions share a byte. Exact, but for rare strides that would take too long to tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.schedule.host.model import Region, Use

MAX_WORK = 100_000
"""Steps that NumPy may take over one pair of regions (`np.shares_memory`)."""

_BASE = 1 << 40


class _Somewhere:
    """An array that is never looked into."""

    def __init__(self, region: Region) -> None:
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": region.shape,
            "strides": region.strides,
            "typestr": f"|V{region.itemsize}",
            "data": (_BASE + region.offset, True),
        }


def overlap(a: Region, b: Region) -> bool:
    """Whether some byte is in both; true where it would take too long to tell."""
    if a is b:
        return 0 not in a.shape
    (low_a, high_a), (low_b, high_b) = a.hull, b.hull
    if a.buffer != b.buffer or max(low_a, low_b) >= min(high_a, high_b):
        return False
    if a == b or (a.dense and b.dense):
        return True
    first, second = np.asarray(_Somewhere(a)), np.asarray(_Somewhere(b))
    # NumPy's own types allow no limit.
    shares: Callable[..., bool] = np.shares_memory
    try:
        return bool(shares(first, second, max_work=MAX_WORK))
    except np.exceptions.TooHardError:
        return True


def covers(a: Region, b: Region) -> bool:
    """Whether every byte of `b` is certainly in `a`; false where that is not plain to see."""
    if a.buffer != b.buffer:
        return False
    return a is b or a == b or (a.dense and a.hull[0] <= b.hull[0] and b.hull[1] <= a.hull[1])


def conflict(a: Use, b: Use) -> bool:
    """Whether the order of two uses matters: one writes what the other touches."""
    return (a.writes or b.writes) and overlap(a.region, b.region)
