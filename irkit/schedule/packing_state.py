"""What a search of packings has decided, and taking it back: compiled, on plain arrays.

Every buffer has a least offset that is left to it. Placing one lifts its rivals above it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


class Search(NamedTuple):
    """Buffers with sizes in units, and the state of a search over them.

    `rank`: places in the order of preference. `twin`: the buffer before it of the same size and rivals, or
    -1. `rivals` of buffer b are `rivals[rival_at[b] : rival_at[b + 1]]`, and so the cliques that it is
    in, and the members of a clique; `near` has the rivals as bits. `low`: the least offset that is left
    to a buffer, its offset once it is `placed`. `hole`: where it was passed over, so that a rival has to
    begin there, or -1. `trail`: rows (buffer, its `low`, its `hole` before), to be taken back; `counts`:
    see below. `rows` and `ends`: per depth, who is to be placed, and where its components end; `some`
    and `some_ends`: the same of their cliques. `blame`: how often a clique refused. `rest`: units of a
    clique that are not placed. `seen`, `left`, `goal` and `line` are for one rule at a time.
    """

    sizes: Ints
    rank: Ints
    twin: Ints
    rival_at: Ints
    rivals: Ints
    near: Words
    clique_at: Ints
    cliques: Ints
    member_at: Ints
    members: Ints
    low: Ints
    hole: Ints
    placed: Ints
    trail: Ints
    counts: Ints
    rows: Ints
    ends: Ints
    some: Ints
    some_ends: Ints
    blame: Ints
    rest: Ints
    seen: Ints
    left: Words
    goal: Words
    line: Ints


# Of `counts`: steps that are left (below zero: the trail was too short), the height of the trail, how deep
# the search has been, the mark of `seen`, the clique that refused last, and whether it is chosen by cliques.
STEPS, HEIGHT, DEEPEST, MARK, LAST, BY_CLIQUE = range(6)


@njit(cache=True)
def lift(s: Search, buffer: int, low: int, hole: int) -> None:
    """From now on `buffer` lies at `low` or above, and a rival in its `hole` where there is one."""
    top = s.counts[HEIGHT]
    if top == len(s.trail):
        s.counts[STEPS] = -1
        return
    s.trail[top, 0], s.trail[top, 1], s.trail[top, 2] = buffer, s.low[buffer], s.hole[buffer]
    s.counts[HEIGHT] = top + 1
    s.low[buffer] = low
    s.hole[buffer] = hole


@njit(cache=True)
def take_back(s: Search, height: int) -> None:
    """All lifts since the trail was so high."""
    for top in range(s.counts[HEIGHT] - 1, height - 1, -1):
        buffer = s.trail[top, 0]
        s.low[buffer], s.hole[buffer] = s.trail[top, 1], s.trail[top, 2]
    s.counts[HEIGHT] = height


@njit(cache=True)
def place(s: Search, buffer: int, limit: int) -> bool:
    """Place `buffer` where it is, its rivals above it; False if one of them ends above the limit then."""
    s.placed[buffer] = 1
    for at in range(s.clique_at[buffer], s.clique_at[buffer + 1]):
        s.rest[s.cliques[at]] -= s.sizes[buffer]
    begin = s.low[buffer]
    end = begin + s.sizes[buffer]
    for at in range(s.rival_at[buffer], s.rival_at[buffer + 1]):
        rival = s.rivals[at]
        if s.placed[rival] == 1:
            continue
        if max(end, s.low[rival]) + s.sizes[rival] > limit:
            return False
        hole = int(s.hole[rival])
        filled = hole >= 0 and begin < hole + s.sizes[rival]
        if filled or s.low[rival] < end:
            lift(s, rival, max(end, s.low[rival]), -1 if filled else hole)
    return True


@njit(cache=True)
def free(s: Search, buffer: int) -> None:
    """`buffer` is to be placed again, if it was; its rivals stay where they are."""
    if s.placed[buffer] == 0:
        return
    s.placed[buffer] = 0
    for at in range(s.clique_at[buffer], s.clique_at[buffer + 1]):
        s.rest[s.cliques[at]] += s.sizes[buffer]
