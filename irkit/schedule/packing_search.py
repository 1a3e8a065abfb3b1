"""The search behind exact packing: compact packings below a limit, all of them if need be, in compiled loops.

A packing is *compact* if no buffer can be moved to a lower place; every packing becomes one by moving
buffers, so it is enough to look at those. A buffer that no rival may lie below is placed as low as it may
be, or passed over: then a rival begins in the hole that it leaves, and it lies above that. Which buffer is
asked next is free, so that a search can stay where room is scarce: at the clique that refused last or most
often (weights: F. Boussemart et al., ECAI 2004; last conflicts: C. Lecoutre et al., Artificial Intelligence
173, 2009). The other way is by offset, as MiniMalloc does (M. D. Moffitt, "MiniMalloc: A Lightweight Memory
Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023), whose dynamic decomposition both have.
What follows from a step is found by `packing_rules.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from irkit.schedule.packing_rules import changes_fit
from irkit.schedule.packing_state import (
    BY_CLIQUE,
    DEEPEST,
    HEIGHT,
    LAST,
    MARK,
    STEPS,
    Ints,
    Search,
    Words,
    free,
    lift,
    place,
    take_back,
)

FOUND, NONE, UNKNOWN = 1, 0, -1

_ONE = np.uint64(1)
_NONE_BELOW = np.iinfo(np.int64).max
_HALVES = np.array(
    [
        0xAAAAAAAAAAAAAAAA,
        0xCCCCCCCCCCCCCCCC,
        0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00,
        0xFFFF0000FFFF0000,
        0xFFFFFFFF00000000,
    ],
    np.uint64,
)
"""The bits whose number has a one at each place."""


@njit(cache=True)
def solve(s: Search, row: Ints, cliques: Ints, depth: int, limit: int) -> int:
    """Place the buffers of `row`, which only rivals connect, below `limit`; `cliques` are those they are in.

    FOUND, and their offsets are in `low`; NONE if there is no such packing; UNKNOWN if the steps end before.
    """
    s.counts[DEEPEST] = max(s.counts[DEEPEST], depth)
    height = s.counts[HEIGHT]
    while True:
        if s.counts[STEPS] <= 0:
            return UNKNOWN
        s.counts[STEPS] -= 1
        buffer = _choice(s, row, cliques)
        here = s.counts[HEIGHT]
        hole = s.hole[buffer]
        least = _forced(s, buffer)
        if least <= s.low[buffer]:
            if place(s, buffer, limit) and changes_fit(s, here, limit):
                state, begin, first = FOUND, 0, 0
                for component in range(_split(s, row, cliques, buffer, depth)):
                    end, until = s.ends[depth, component], s.some_ends[depth, component]
                    members, theirs = s.rows[depth, begin:end], s.some[depth, first:until]
                    state = solve(s, members, theirs, depth + 1, limit)
                    if state != FOUND:
                        break
                    begin, first = end, until
                if state != NONE:
                    return state
                _free_all(s, row)
            free(s, buffer)
            take_back(s, here)
            hole = s.low[buffer]
            least = _least_end(s, buffer, hole + s.sizes[buffer])
        if least > limit - s.sizes[buffer]:
            break
        lift(s, buffer, least, hole)
        if not changes_fit(s, here, limit):
            break
    take_back(s, height)
    return NONE


@njit(cache=True)
def _free_all(s: Search, row: Ints) -> None:
    for buffer in row:
        free(s, buffer)


@njit(cache=True)
def _before(s: Search, a: int, b: int) -> bool:
    return s.low[a] < s.low[b] or (s.low[a] == s.low[b] and s.rank[a] < s.rank[b])


@njit(cache=True)
def _choice(s: Search, row: Ints, cliques: Ints) -> int:
    """A buffer that no rival comes before: the first of all, or one that is near the scarcest clique."""
    chosen = -1
    if s.counts[BY_CLIQUE] == 0:
        for buffer in row:
            if chosen < 0 or _before(s, buffer, chosen):
                chosen = buffer
        return chosen
    clique = _scarcest(s, cliques)
    for at in range(s.member_at[clique], s.member_at[clique + 1]):
        member = s.members[at]
        if s.placed[member] == 0 and (chosen < 0 or _before(s, member, chosen)):
            chosen = member
    while True:
        first = chosen
        for at in range(s.rival_at[first], s.rival_at[first + 1]):
            rival = s.rivals[at]
            if s.placed[rival] == 0 and _before(s, rival, chosen):
                chosen = rival
        if chosen == first:
            return chosen


@njit(cache=True)
def _scarcest(s: Search, cliques: Ints) -> int:
    """The clique that refused last, if it is here; else who refused most often, and has most left."""
    last, best = s.counts[LAST], -1
    for clique in cliques:
        if clique == last and s.rest[clique] > 0:
            return int(clique)
        more = best < 0 or s.blame[clique] > s.blame[best]
        if more or (s.blame[clique] == s.blame[best] and s.rest[clique] > s.rest[best]):
            best = clique
    return int(best)


@njit(cache=True)
def _forced(s: Search, buffer: int) -> int:
    """Where a buffer that no rival may lie below has to be lifted to, before it can be placed; or -1.

    Above its twin, above what fills its hole, or on top of what is to be placed if it stands on nothing.
    """
    twin = s.twin[buffer]
    if twin >= 0 and s.placed[twin] == 0:
        return int(s.low[twin] + s.sizes[twin])
    if s.hole[buffer] >= 0:
        return _least_end(s, buffer, s.hole[buffer] + s.sizes[buffer])
    if s.low[buffer] == 0:
        return -1
    for at in range(s.rival_at[buffer], s.rival_at[buffer + 1]):
        rival = s.rivals[at]
        if s.placed[rival] == 1 and s.low[rival] + s.sizes[rival] == s.low[buffer]:
            return -1
    return _least_end(s, buffer, _NONE_BELOW)


@njit(cache=True)
def _least_end(s: Search, buffer: int, below: int) -> int:
    """Where the lowest rival ends that is still to be placed and may begin below that."""
    least = _NONE_BELOW
    for at in range(s.rival_at[buffer], s.rival_at[buffer + 1]):
        rival = s.rivals[at]
        if s.placed[rival] == 0 and s.low[rival] < below:
            least = min(least, s.low[rival] + s.sizes[rival])
    return int(least)


@njit(cache=True)
def _split(s: Search, row: Ints, cliques: Ints, without: int, depth: int) -> int:
    """Write who is left of `row` and of `cliques` at `depth`, by connected components; their number."""
    components = _split_row(s, row, without, depth)
    _split_cliques(s, cliques, components, depth)
    return components


@njit(cache=True)
def _split_row(s: Search, row: Ints, without: int, depth: int) -> int:
    """Write who is left of `row` to the row of `depth`, by connected components; their number.

    It is one component as soon as all rivals of `without` are reached from one another.
    """
    made = s.rows[depth]
    s.left[:] = 0
    for buffer in row:
        s.left[buffer >> 6] |= _ONE << np.uint64(buffer & 63)
    _clear(s.left, without)
    s.goal[:] = s.left & s.near[without]
    count = components = 0
    for seed in row:
        if not s.left[seed >> 6] >> np.uint64(seed & 63) & _ONE:
            continue
        _clear(s.left, seed)
        _clear(s.goal, seed)
        made[count] = seed
        count = _reached(s, made, count, components == 0)
        if count < 0:
            count = 0
            for buffer in row:
                made[count] = buffer
                count += buffer != without
            s.ends[depth, 0] = count
            return 1
        s.ends[depth, components] = count
        components += 1
    return components


@njit(cache=True)
def _reached(s: Search, made: Ints, done: int, first: bool) -> int:
    """Write all that `made[done]` is connected with behind it; where they end, or -1: the goal is reached."""
    count = done + 1
    while done < count:
        near = s.near[made[done]]
        done += 1
        missing = np.uint64(0)
        for word in range(len(near)):
            more = near[word] & s.left[word]
            s.left[word] &= ~more
            s.goal[word] &= ~more
            missing |= s.goal[word]
            while more:
                bit = more & (~more + _ONE)
                made[count] = (word << 6) + _number(bit)
                count += 1
                more ^= bit
        if first and not missing:
            return -1
    return count


@njit(cache=True)
def _number(bit: np.uint64) -> int:
    number = 0
    for place_of in range(6):
        number += (bit & _HALVES[place_of] != 0) << place_of
    return number


@njit(cache=True)
def _clear(words: Words, buffer: int) -> None:
    words[buffer >> 6] &= ~(_ONE << np.uint64(buffer & 63))


@njit(cache=True)
def _split_cliques(s: Search, cliques: Ints, components: int, depth: int) -> None:
    """Write the cliques of the components at `depth`, of those of all, one component behind another."""
    made, count, begin = s.some[depth], 0, 0
    if components == 1:
        for clique in cliques:
            made[count] = clique
            count += s.rest[clique] > 0
        s.some_ends[depth, 0] = count
        return
    for component in range(components):
        s.counts[MARK] += 1
        for buffer in s.rows[depth, begin : s.ends[depth, component]]:
            for at in range(s.clique_at[buffer], s.clique_at[buffer + 1]):
                clique = s.cliques[at]
                made[count] = clique
                count += s.seen[clique] != s.counts[MARK]
                s.seen[clique] = s.counts[MARK]
        s.some_ends[depth, component] = count
        begin = s.ends[depth, component]
