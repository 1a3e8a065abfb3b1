"""Sets of buffers that are hard to pack: a rectangle of time and bytes, cut at random.

Cut guillotine-wise from 1 MiB: 154 to 454 buffers whose bytes are 7 to 75 times the arena, as those of the 11
instances of MiniMalloc are (M. D. Moffitt, ASPLOS 2023). All fit into 1 MiB, and greedy packings need 1.2 to
1.6 times as much. What is planted is known, so that a planner that does not reach it is caught.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.schedule.box_overlap import Mask

Ints = Any

ARENA = 1 << 20
_TIMES = 1000
_STEP = 1024
"""Bytes; sizes are multiples."""


@dataclass(frozen=True)
class IntervalSet:
    """Buffers that are in use in [begin, end), in no order; `cliques`: the largest sets in use at once."""

    begin: Ints
    end: Ints
    sizes: Ints
    rivals: Mask
    cliques: Mask

    @property
    def bound(self) -> int:
        """The most bytes in use at any time."""
        return int((self.cliques @ self.sizes).max())


def interval_set(count: int, reuse: float, taken: float = 0.0, seed: int = 0) -> IntervalSet:
    """`count` buffers, whose bytes are about `reuse` times the arena, less a share that is `taken` away."""
    rng = np.random.default_rng(seed)
    cut = np.array(_cut(rng, count, reuse))
    cut = rng.permutation(cut[rng.random(count) >= taken])
    begin, end, sizes = cut[:, 0], cut[:, 1], cut[:, 3] - cut[:, 2]
    rivals = (begin[:, None] < end) & (begin < end[:, None])
    np.fill_diagonal(rivals, False)
    times = np.unique(begin)[:, None]
    live = np.unique((begin <= times) & (times < end), axis=0)
    largest = [a for a in live if sum((a <= b).all() for b in live) == 1]
    return IntervalSet(begin, end, sizes, rivals, np.array(largest))


def _cut(rng: np.random.Generator, count: int, reuse: float) -> list[tuple[int, int, int, int]]:
    """Cut the largest in time or in bytes, whichever it has more of for its number of columns and layers."""
    cut = [(0, _TIMES, 0, ARENA)]
    while len(cut) < count:
        long = np.array([(b - a) / _TIMES * reuse for a, b, _, _ in cut])
        tall = np.array([(d - c) / ARENA * count / reuse for _, _, c, d in cut])
        weight = np.maximum(long, tall) ** 2
        at = int(rng.choice(len(cut), p=weight / weight.sum()))
        in_time = bool(rng.random() < long[at] / (long[at] + tall[at]))
        cut[at : at + 1] = _halves(rng, cut[at], in_time)
    return cut


def _halves(
    rng: np.random.Generator, piece: tuple[int, int, int, int], in_time: bool
) -> list[tuple[int, int, int, int]]:
    """The two of a piece, or it alone where it is too small."""
    a, b, c, d = piece
    if in_time and b - a >= 2:
        at = int(rng.integers(a + 1, b))
        return [(a, at, c, d), (at, b, c, d)]
    if not in_time and d - c >= 2 * _STEP:
        at = c + _STEP * int(rng.integers(1, (d - c) // _STEP))
        return [(a, b, c, at), (a, b, at, d)]
    return [piece]
