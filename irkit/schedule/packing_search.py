"""The search behind exact packing: compact packings below a limit, all of them if need be, in compiled loops.

A packing is *compact* if no buffer can be moved down; every packing becomes one by moving buffers down, so it
is enough to look at those. Buffers are placed in order of (offset, number), each as low as those placed
before allow. That and most rules are those of MiniMalloc (M. D. Moffitt, "MiniMalloc: A Lightweight Memory
Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023): canonical order, dominance, sections,
dynamic decomposition. Two are irkit's: sections are any cliques of rivals, each bounded as one machine is
with release dates, and a buffer that was passed over must be lifted by a rival that is not placed yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

FOUND, NONE, UNKNOWN = 1, 0, -1

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Search(NamedTuple):
    """Buffers in the order of preference, with sizes in units, and the state of a search over them.

    `rivals` of buffer b are `rivals[rival_at[b] : rival_at[b + 1]]`, and so the cliques that it is in.
    `twin`: the buffer before it of the same size and rivals, or -1. `low`: the least offset that is left to
    a buffer, its offset once it is `placed`. `trail`: rows (buffer, its `low` before), to be taken back;
    `counts`: steps that are left, the height of the trail, and how deep the search has been. `rows`: per
    depth, who is to be placed; `ends`: per depth, where its components end. `blame`: how often a clique
    refused. `apart`: the rivals as a matrix. `finish` and `mark` are for one rule at a time.
    """

    sizes: Ints
    rival_at: Ints
    rivals: Ints
    apart: Mask
    clique_at: Ints
    cliques: Ints
    twin: Ints
    low: Ints
    placed: Ints
    trail: Ints
    counts: Ints
    rows: Ints
    ends: Ints
    finish: Ints
    blame: Ints
    mark: Ints


@njit(cache=True)
def _lift(s: Search, buffer: int, low: int) -> None:
    """From now on `buffer` lies at `low` or above."""
    top = s.counts[1]
    s.trail[top, 0], s.trail[top, 1] = buffer, s.low[buffer]
    s.counts[1] = top + 1
    s.low[buffer] = low


@njit(cache=True)
def _take_back(s: Search, height: int) -> None:
    for top in range(s.counts[1] - 1, height - 1, -1):
        s.low[s.trail[top, 0]] = s.trail[top, 1]
    s.counts[1] = height


@njit(cache=True)
def _place(s: Search, buffer: int) -> None:
    s.placed[buffer] = 1
    end = s.low[buffer] + s.sizes[buffer]
    for at in range(s.rival_at[buffer], s.rival_at[buffer + 1]):
        rival = s.rivals[at]
        if s.placed[rival] == 0 and s.low[rival] < end:
            _lift(s, rival, end)


@njit(cache=True)
def _least_lift(s: Search, buffer: int, floor: int) -> int:
    """Where the lowest rival ends that is still to be placed, at `floor` or above."""
    least = np.iinfo(np.int64).max
    for at in range(s.rival_at[buffer], s.rival_at[buffer + 1]):
        rival = s.rivals[at]
        if s.placed[rival] == 0:
            least = min(least, max(s.low[rival], floor) + s.sizes[rival])
    return int(least)


@njit(cache=True)
def _lift_passed(s: Search, row: Ints, floor: int, last: int, limit: int) -> bool:
    """Lift who was passed over: in a compact packing a rival lies below it. False if none is left for it."""
    for buffer in row:
        low = s.low[buffer]
        if low < floor or (low == floor and buffer < last):
            least = _least_lift(s, buffer, floor)
            if least > limit - s.sizes[buffer]:
                return False
            if least > low:
                _lift(s, buffer, least)
    return True


@njit(cache=True)
def _sort(s: Search, row: Ints) -> None:
    """By (low, number); by insertion, as little has changed."""
    for at in range(1, len(row)):
        buffer = row[at]
        low = s.low[buffer]
        to = at
        while to > 0 and (
            s.low[row[to - 1]] > low or (s.low[row[to - 1]] == low and row[to - 1] > buffer)
        ):
            row[to] = row[to - 1]
            to -= 1
        row[to] = buffer


@njit(cache=True)
def _fits(s: Search, row: Ints, floor: int, limit: int) -> bool:
    """Whether each clique ends below the limit when its members follow one another as they come."""
    for buffer in row:
        for at in range(s.clique_at[buffer], s.clique_at[buffer + 1]):
            s.finish[s.cliques[at]] = floor
    for buffer in row:
        low, size = s.low[buffer], s.sizes[buffer]
        for at in range(s.clique_at[buffer], s.clique_at[buffer + 1]):
            clique = s.cliques[at]
            end = max(s.finish[clique], low) + size
            if end > limit:
                s.blame[clique] += 1
                return False
            s.finish[clique] = end
    return True


@njit(cache=True)
def _ceiling(s: Search, row: Ints) -> int:
    """Where the first of them could end: who starts there or above leaves a gap that it fits in."""
    least = np.iinfo(np.int64).max
    for buffer in row:
        least = min(least, s.low[buffer] + s.sizes[buffer])
    return int(least)


@njit(cache=True)
def _hub(s: Search, buffer: int) -> bool:
    """Whether some rival that is left is one of all others, so that they stay connected without `buffer`."""
    begin, end = s.rival_at[buffer], s.rival_at[buffer + 1]
    for at in range(begin, end):
        hub = s.rivals[at]
        if s.placed[hub] == 0:
            joins = True
            for other in range(begin, end):
                rival = s.rivals[other]
                if rival != hub and s.placed[rival] == 0 and not s.apart[hub, rival]:
                    joins = False
                    break
            if joins:
                return True
    return False


@njit(cache=True)
def _split(s: Search, row: Ints, without: int, depth: int) -> int:
    """Write who is left of `row` to the row of `depth`, by connected components; their number."""
    made, ends = s.rows[depth], s.ends[depth]
    if _hub(s, without):
        count = 0
        for buffer in row:
            made[count] = buffer
            count += buffer != without
        ends[0] = count
        return 1
    for buffer in row:
        s.mark[buffer] = 1
    s.mark[without] = 0
    count = done = components = 0
    for seed in row:
        if s.mark[seed] == 0:
            continue
        s.mark[seed], made[count] = 0, seed
        count += 1
        while done < count:
            buffer = made[done]
            done += 1
            for at in range(s.rival_at[buffer], s.rival_at[buffer + 1]):
                rival = s.rivals[at]
                if s.mark[rival] == 1:
                    s.mark[rival], made[count] = 0, rival
                    count += 1
        ends[components] = count
        components += 1
    return components


@njit(cache=True)
def _free(s: Search, row: Ints) -> None:
    for buffer in row:
        s.placed[buffer] = 0


@njit(cache=True)
def _excluded(s: Search, buffer: int, floor: int, last: int) -> bool:
    """Whether it comes too late in the order, or before its twin."""
    low = s.low[buffer]
    if low < floor or (low == floor and buffer < last):
        return True
    return s.twin[buffer] >= 0 and s.placed[s.twin[buffer]] == 0


@njit(cache=True)
def solve(s: Search, row: Ints, depth: int, floor: int, last: int, limit: int) -> int:
    """Place the buffers of `row`, which only rivals connect, below `limit` and behind (`floor`, `last`).

    FOUND, and their offsets are in `low`; NONE if there is no such packing; UNKNOWN if the steps end before.
    """
    if s.counts[0] <= 0:
        return UNKNOWN
    s.counts[0] -= 1
    s.counts[2] = max(s.counts[2], depth)
    if not _lift_passed(s, row, floor, last, limit):
        return NONE
    _sort(s, row)
    if not _fits(s, row, floor, limit):
        return NONE
    ceiling = _ceiling(s, row)
    height = s.counts[1]
    for buffer in row:
        low = int(s.low[buffer])
        if low >= ceiling:
            break
        if _excluded(s, buffer, floor, last):
            continue
        _place(s, buffer)
        state, begin = FOUND, 0
        for component in range(_split(s, row, buffer, depth)):
            end = s.ends[depth, component]
            state = solve(s, s.rows[depth, begin:end], depth + 1, low, buffer, limit)
            if state != FOUND:
                break
            begin = end
        if state != NONE:
            return state
        _free(s, row)
        _take_back(s, height)
    return NONE
