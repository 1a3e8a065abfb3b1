"""The lowest packing there is, by a search within bounds: found, and proved to be the lowest, if they allow.

Whether everything fits below a limit is asked of the lower bound first. Where the answer is no, the bound
rises; where it is not found out within the bounds, limits between it and the best packing known are tried.
Searches start again and again, in other orders of preference (`packing_orders.py`) and with Luby's limits:
how long one takes has a heavy tail. The same buffers come to the same packing, as long as it is steps that
bound the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Mask
from irkit.schedule.packing_orders import Orders
from irkit.schedule.packing_search import FOUND, NONE, UNKNOWN, Search, solve
from irkit.schedule.pool import SearchBounds

Ints = NDArray[np.int64]

_FADING = 0.9
"""Of the blame of one attempt in the next."""


@dataclass(frozen=True)
class Packed:
    """Offsets, the `height` that they reach, and the `bound` that no packing is below."""

    offsets: Ints
    height: int
    bound: int

    @property
    def optimal(self) -> bool:
        """Whether no packing is lower."""
        return self.height <= self.bound


@dataclass
class ExactPacking:
    """Buffers of `sizes` (bytes, multiples of the alignment), of whom `rivals` may share no byte.

    `rivals` is symmetric, and false on the diagonal; `cliques` are sets of which all are rivals: [cliques,
    buffers]. Each buffer is in one at least, and the more there are, the sooner a search knows.
    """

    sizes: Ints
    rivals: Mask
    cliques: Mask
    bounds: SearchBounds = field(default_factory=SearchBounds)

    def __post_init__(self) -> None:
        self._unit = max(1, math.gcd(*self.sizes.tolist()))
        self._steps = self.bounds.steps
        self._blame = np.zeros(len(self.cliques))
        self._until = time.monotonic() + self.bounds.seconds

    def improve(self, offsets: Ints, bound: int) -> Packed:
        """The best packing found, no worse than `offsets`, and the best bound, no less than `bound`."""
        best, low = offsets, -(-bound // self._unit) * self._unit
        bound = limit = low
        while limit < (height := self._height(best)) and self._left():
            state, found = self._fit(limit)
            if state == FOUND:
                best, height = found, self._height(found)
            elif state == NONE:
                low = limit + self._unit
                bound = low if bound >= limit else bound
            else:
                low = limit + self._unit
            limit = low if state == NONE else low + (height - low) // self._unit // 2 * self._unit
        height = self._height(best)
        return Packed(best, height, min(bound, height))

    def _left(self) -> bool:
        return self._steps > 0 and time.monotonic() < self._until

    def _height(self, offsets: Ints) -> int:
        return int((offsets + self.sizes).max(initial=0))

    def _fit(self, limit: int) -> tuple[int, Ints]:
        """Whether everything fits below `limit`, and how, by three quarters of the steps and time left."""
        end = self._steps // 4
        now = time.monotonic()
        until = now + (self._until - now) * 3 / 4
        orders = Orders(self.sizes, self.cliques)
        first = orders.first()
        for share in _luby():
            given = min(share * len(self.sizes), self._steps - end)
            order = next(first, None)
            order = orders.another(self._blame) if order is None else order
            state, offsets, used, depth = self._attempt(order, limit, given)
            orders.went(depth)
            self._steps -= used
            if state != UNKNOWN:
                return state, offsets
            if self._steps <= end or time.monotonic() > until:
                break
        return UNKNOWN, self.sizes

    def _attempt(self, order: Ints, limit: int, steps: int) -> tuple[int, Ints, int, int]:
        """One search in one order: what it comes to, offsets, the steps that it took, how deep it went."""
        search = self._search(order, steps)
        state = FOUND
        for members in components(search.apart):
            state = solve(search, members, 0, 0, -1, limit // self._unit)
            if state != FOUND:
                break
        offsets = np.zeros(len(order), np.int64)
        offsets[order] = search.low * self._unit
        self._blame = _FADING * self._blame + search.blame / max(1, search.blame.max(initial=0))
        left, _, depth = search.counts.tolist()
        return int(state), offsets, steps - left, depth

    def _search(self, order: Ints, steps: int) -> Search:
        count = len(order)
        rivals = self.rivals[np.ix_(order, order)]
        sizes = self.sizes[order] // self._unit
        cliques = self.cliques[:, order].T
        rival_at, rival = _lists(rivals)
        clique_at, clique = _lists(cliques)
        return Search(
            sizes,
            rival_at,
            rival,
            rivals,
            clique_at,
            clique,
            _twins(rivals, sizes),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.empty((2 * count * (count + 1) + 1, 2), np.int64),
            np.array([steps, 0, 0], np.int64),
            np.empty((count + 1, count), np.int64),
            np.empty((count + 1, count), np.int64),
            np.zeros(self.cliques.shape[0], np.int64),
            np.zeros(self.cliques.shape[0], np.int64),
            np.zeros(count, np.int64),
        )


def _lists(mask: Mask) -> tuple[Ints, Ints]:
    """The true columns of each row, one row behind another, and where each row starts and the last ends."""
    at = np.concatenate([[0], mask.sum(axis=1).cumsum()]).astype(np.int64)
    return at, np.nonzero(mask)[1].astype(np.int64)


def _twins(rivals: Mask, sizes: Ints) -> Ints:
    """Of each buffer the one before it that is its rival, of its size, and has its rivals; or -1."""
    twin = np.full(len(sizes), -1, np.int64)
    seen: dict[tuple[int, bytes], int] = {}
    for number, size in enumerate(sizes.tolist()):
        row = rivals[number].copy()
        row[number] = True
        key = size, row.tobytes()
        twin[number] = seen.get(key, -1)
        seen[key] = number
    return twin


def components(rivals: Mask) -> list[Ints]:
    """Sets of buffers that only rivals connect, each in order."""
    left = np.ones(len(rivals), bool)
    found: list[Ints] = []
    while left.any():
        members = np.zeros(len(rivals), bool)
        members[np.argmax(left)] = True
        while ((more := members | rivals[members].any(axis=0)) != members).any():
            members = more
        left &= ~members
        found.append(np.flatnonzero(members).astype(np.int64))
    return found


def _luby() -> Iterator[int]:
    """1 1 2 1 1 2 4 ...: limits of restarts (M. Luby, A. Sinclair and D. Zuckerman, 1993)."""
    numbers = [1]
    yield 1
    while True:
        again = [*numbers, 2 * numbers[-1]]
        yield from again
        numbers += again
