"""Buffers that share an arena, and greedy packings of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Indices, Mask
from irkit.schedule.chain_cover import ChainCover

_Ints = NDArray[np.int64]


Covers = list[tuple[Indices, ChainCover]]
"""Chain covers, each of the buffers that it numbers."""


@dataclass(frozen=True)
class SearchBounds:
    """What an exact search may take: `steps` in all, and `seconds` at most, which count only where steps are
    slow. It is not begun for more `buffers` than that: its memory grows with their square."""

    steps: int = 50_000
    seconds: float = 10.0
    buffers: int = 2048


@dataclass(frozen=True)
class Pool:
    """Buffers of one space, their sizes in bytes (multiples of the alignment), and `before`: who is done
    before whom begins.

    `rivals`: who may be in use together with whom; the diagonal says who is used at all.
    """

    buffers: Indices
    sizes: _Ints
    before: Mask
    rivals: Mask

    def pack(self, order: Indices, best_fit: bool) -> _Ints:
        """Offsets when the buffers are placed one by one in `order`, into the first or tightest gap."""
        offsets = np.zeros(len(self.sizes), np.int64)
        placed = np.zeros(len(self.sizes), bool)
        for index in order:
            rivals = np.flatnonzero(placed & self.rivals[index])
            offsets[index] = self._gap(offsets[rivals], self.sizes[rivals], index, best_fit)
            placed[index] = True
        return offsets

    def _gap(self, starts: _Ints, sizes: _Ints, index: np.intp, best_fit: bool) -> int:
        by_start = np.argsort(starts, kind="stable")
        starts, ends = starts[by_start], (starts + sizes)[by_start]
        begin = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)])
        room = np.concatenate([starts, [np.iinfo(np.int64).max]]) - begin
        fits = np.flatnonzero(room >= self.sizes[index])
        return int(begin[fits[np.argmin(room[fits])] if best_fit else fits[0]])

    def height(self, offsets: _Ints) -> int:
        """Bytes up to the end of the last buffer."""
        return int((offsets + self.sizes).max(initial=0))

    def heaviest(self, cliques: Mask) -> int:
        """Bytes of the heaviest of some sets of buffers."""
        return int((cliques @ self.sizes).max(initial=0))

    def slots(self, cover: ChainCover) -> _Ints:
        """Offsets when each chain of a cover of all buffers has a slot of its own."""
        offsets, top = np.zeros(len(self.sizes), np.int64), 0
        for chain in cover.chains():
            offsets[chain] = top
            top += int(self.sizes[chain].max())
        return offsets

    def candidates(self) -> Iterator[_Ints]:
        """Packings worth trying, cheap ones first."""
        by_number = np.arange(len(self.sizes))
        by_contention = np.lexsort((by_number, -(self.rivals @ self.sizes)))
        for order in (np.lexsort((by_number, -self.sizes)), by_contention, by_number):
            for best_fit in (False, True):
                yield self.pack(order, best_fit)

    def best(self, bound: int, first: _Ints) -> _Ints:
        """The lowest packing among `first` and the candidates; stops at one that reaches `bound`."""
        lowest = first
        for offsets in self.candidates():
            if self.height(lowest) <= bound:
                break
            lowest = min(lowest, offsets, key=self.height)
        return lowest


def first_packing(pool: Pool, covers: Covers) -> _Ints:
    """One slot per chain where a cover has all buffers, else one per buffer."""
    for members, cover in covers:
        if len(members) == len(pool.sizes):
            return pool.slots(cover)
    return np.concatenate([[0], pool.sizes.cumsum()[:-1]])[: len(pool.sizes)]
