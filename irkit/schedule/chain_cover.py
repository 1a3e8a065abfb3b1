"""Dilworth's theorem made concrete: fewest chains that cover an order, and an antichain as large.

For buffers of one size a chain is a slot of memory and an antichain is a proof that so many slots are
needed, so the two together are an optimal plan and its certificate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Bools = NDArray[np.bool_]


class ChainCover:
    """A minimum chain cover of a strict partial order given as a matrix `before` [n, n].

    A chain cover is a matching of elements to their successors; a maximum matching, grown by
    augmenting paths over rows kept as integers, leaves the fewest chains.
    """

    def __init__(self, before: _Bools) -> None:
        self._count = len(before)
        packed = np.packbits(before, axis=1, bitorder="little")
        self._later = [int.from_bytes(row.tobytes(), "little") for row in packed]
        self._next = [-1] * self._count
        self._previous = [-1] * self._count
        self._unseen = (1 << self._count) - 1
        for element in range(self._count):
            self._augment(element)

    def _augment(self, start: int) -> None:
        """Give `start` a successor if a rearrangement of the others' allows it.

        What a search reaches in vain can be skipped by all later searches, so it stays seen.
        """
        unseen, reached_from, queue = self._unseen, dict[int, int](), [start]
        for element in queue:
            candidates = self._later[element] & unseen
            unseen &= ~candidates
            while candidates:
                successor = (candidates & -candidates).bit_length() - 1
                candidates &= candidates - 1
                reached_from[successor] = element
                if self._previous[successor] < 0:
                    self._rematch(successor, reached_from)
                    return
                queue.append(self._previous[successor])
        self._unseen = unseen

    def _rematch(self, successor: int, reached_from: dict[int, int]) -> None:
        while successor >= 0:
            element = reached_from[successor]
            displaced = self._next[element]
            self._next[element], self._previous[successor] = successor, element
            successor = displaced

    def chains(self) -> list[list[int]]:
        """The chains, each in order."""
        result: list[list[int]] = []
        for head in range(self._count):
            if self._previous[head] >= 0:
                continue
            chain, element = list[int](), head
            while element >= 0:
                chain.append(element)
                element = self._next[element]
            result.append(chain)
        return result

    def antichain(self) -> _Bools:
        """A largest set without two ordered elements, one from each chain: mask [n].

        By König's theorem: reachable by alternating paths from the last elements of chains as a
        predecessor, and not as a successor.
        """
        queue = [element for element in range(self._count) if self._next[element] < 0]
        unseen, reached = (1 << self._count) - 1, set(queue)
        for element in queue:
            candidates = self._later[element] & unseen
            unseen &= ~candidates
            while candidates:
                successor = (candidates & -candidates).bit_length() - 1
                candidates &= candidates - 1
                if (before := self._previous[successor]) not in reached:
                    reached.add(before)
                    queue.append(before)
        return np.array([i in reached and bool(unseen >> i & 1) for i in range(self._count)], bool)
