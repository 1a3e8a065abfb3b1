"""Places of an axis that differ from round to round of a loop, and slices that see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irkit.frontends.numpy.affine import Affine
from irkit.frontends.numpy.indices import Index


@dataclass(frozen=True)
class Span:
    """Places of an axis from `low` to below `high`."""

    low: Affine
    high: Affine

    @property
    def now(self) -> slice:
        """In the round that is traced."""
        return slice(self.low.now, max(self.low.now, self.high.now))

    @property
    def settled(self) -> Span:
        """As symbols that are fixed by now leave it."""
        return Span(self.low.settled, self.high.settled)

    def never_empty(self) -> bool:
        """Whether it has a place in every round."""
        return self.high.plus(self.low, -1).extent()[0] > 0


Spans = Mapping[int, Span]
"""By axis."""


def moves(key: slice[Any]) -> bool:
    """Whether an end of a slice is an index of a loop."""
    return isinstance(key.start, Index) or isinstance(key.stop, Index)


def without_ellipsis(keys: tuple[Any, ...], ndim: int) -> list[Any]:
    """The keys of an index of `ndim` axes, whole axes in place of `...`."""
    at = [n for n, k in enumerate(keys) if k is Ellipsis]
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if not at:
        return list(keys)
    return [*keys[: at[0]], *[slice(None)] * (ndim - used), *keys[at[0] + 1 :]]


def span_of(key: slice[Any], extent: int) -> tuple[slice, Span] | None:
    """All that a slice is in any round, and which of it; None for one that is as long in every round, that
    steps, and that wraps or is cut off in some."""
    if key.step not in (None, 1) or not moves(key):
        return None
    low, high = _limit(key.start, 0, extent), _limit(key.stop, extent, extent)
    if low is None or high is None or not high.plus(low, -1).settled.terms:
        return None
    ends = [end for limit in (low, high) for end in limit.extent()]
    if min(ends) < 0 or max(ends) > extent:
        return None
    # The same in every round, so that rounds are alike.
    first, last = max(0, low.span()[0]), min(extent, high.span()[1])
    if first >= last:
        return None
    begin = Affine(first)
    return slice(first, last), Span(low.plus(begin, -1), high.plus(begin, -1))


def _limit(limit: Any, default: int, extent: int) -> Affine | None:
    if limit is None:
        return Affine(default)
    if isinstance(limit, Index):
        return limit.affine
    if not isinstance(limit, int):
        return None
    return Affine(min(max(limit + extent if limit < 0 else limit, 0), extent))
