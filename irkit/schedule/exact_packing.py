"""The lowest packing there is, by a search within bounds: found, and proved to be the lowest, if they allow.

Whether everything fits below a limit is asked of the lower bound first. Where the answer is no, the bound
rises; where it is not found out within the bounds, limits between it and the best packing known are tried.
Searches start again and again, in other orders of preference (`packing_orders.py`), by cliques and by offset
in turn, and with Luby's limits: how long one takes has a heavy tail. The same buffers come to the same
packing, as long as it is steps that bound the search.
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
from irkit.schedule.packing_search import FOUND, NONE, UNKNOWN, solve
from irkit.schedule.packing_state import DEEPEST, STEPS, Search
from irkit.schedule.pool import SearchBounds

Ints = NDArray[np.int64]

_FADING = 0.9
"""Of the blame of one attempt in the next."""

_LEARNED = 10
"""What a search begins with for the clique with the most blame of those before it."""


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
        used = self.sizes > 0
        self._unit = max(1, math.gcd(*self.sizes.tolist()))
        self._steps = self.bounds.steps
        self._blame = np.zeros(len(self.cliques))
        self._attempts = 0
        self._tables = SearchTables(
            self.sizes // self._unit, self.rivals & used & used[:, None], self.cliques & used
        )
        # The loops are compiled, or read, before the clock starts.
        self._attempt(np.arange(len(self.sizes)), 0, 0)
        self._attempts = 0
        self._until = time.monotonic() + self.bounds.seconds

    def improve(self, offsets: Ints, bound: int) -> Packed:
        """The best packing found, no worse than `offsets`, and the best bound, no less than `bound`."""
        bound = max(bound, int((self.cliques @ self.sizes).max(initial=0)))
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
        learned = (_LEARNED * self._blame).astype(np.int64)
        # MiniMalloc's orders by cliques; then both ways in turn, as each finds what the other does not.
        by_clique = self._attempts < 3 or self._attempts % 2 == 0
        search = self._tables.search(order, steps, learned, by_clique)
        self._attempts += 1
        state = FOUND
        for members, cliques in self._tables.components:
            state = solve(search, members, cliques, 0, limit // self._unit)
            if state != FOUND:
                break
        blame = search.blame - learned
        self._blame = _FADING * self._blame + blame / max(1, blame.max(initial=0))
        left = int(search.counts[STEPS])
        state = UNKNOWN if left < 0 else int(state)
        return state, search.low * self._unit, steps - max(left, 0), int(search.counts[DEEPEST])


class SearchTables:
    """What all searches over some buffers share: lists of rivals and cliques, and rooms to write to."""

    def __init__(self, sizes: Ints, rivals: Mask, cliques: Mask) -> None:
        count, many = len(sizes), len(cliques)
        bits = np.zeros((count, -(-count // 64) * 64), bool)
        bits[:, :count] = rivals
        near = np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little")).view(np.uint64)
        self._lists = (*_lists(rivals), near, *_lists(cliques.T), *_lists(cliques))
        self._sizes, self._weights = sizes, cliques @ sizes
        self._alike = _alike(rivals, sizes)
        self.components = [
            (members, np.flatnonzero(cliques[:, members].any(axis=1)))
            for members in components(rivals)
            if sizes[members].all()
        ]
        # Rooms for what a search writes before it reads it: fresh ones would cost as much as a short search.
        self._trail = np.empty((2 * count * (count + 1) + 1, 3), np.int64)
        self._rows, self._ends, self._some_ends = (
            np.empty((count + 1, count), np.int64) for _ in range(3)
        )
        self._some = np.empty((count + 1, many + 1), np.int64)

    def search(self, order: Ints, steps: int, blame: Ints, by_clique: bool) -> Search:
        """One that has not begun."""
        count, words = len(order), self._lists[2].shape[1]
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        return Search(
            self._sizes,
            rank,
            _twins(self._alike, rank),
            *self._lists,
            np.zeros(count, np.int64),
            np.full(count, -1, np.int64),
            np.zeros(count, np.int64),
            self._trail,
            np.array([steps, 0, 0, 0, -1, by_clique], np.int64),
            self._rows,
            self._ends,
            self._some,
            self._some_ends,
            blame.copy(),
            self._weights.copy(),
            np.zeros(len(blame), np.int64),
            np.zeros(words, np.uint64),
            np.zeros(words, np.uint64),
            np.zeros(count, np.int64),
        )


def _lists(mask: Mask) -> tuple[Ints, Ints]:
    """The true columns of each row, one row behind another, and where each row starts and the last ends."""
    at = np.concatenate([[0], mask.sum(axis=1).cumsum()]).astype(np.int64)
    return at, np.nonzero(mask)[1].astype(np.int64)


def _alike(rivals: Mask, sizes: Ints) -> list[Ints]:
    """Buffers of one size that are rivals and have the same others; sets of more than one."""
    rows = rivals | np.eye(len(sizes), dtype=bool)
    sets: dict[tuple[int, bytes], list[int]] = {}
    for number, size in enumerate(sizes.tolist()):
        sets.setdefault((size, rows[number].tobytes()), []).append(number)
    return [np.array(members) for members in sets.values() if len(members) > 1]


def _twins(alike: list[Ints], rank: Ints) -> Ints:
    """Of each buffer the one before it that is alike; or -1."""
    twin = np.full(len(rank), -1, np.int64)
    for members in alike:
        ordered = members[np.argsort(rank[members])]
        twin[ordered[1:]] = ordered[:-1]
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
