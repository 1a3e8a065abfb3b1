"""What no packing below a limit can have: rules over the cliques of a search, each as one machine.

The members of a clique that are left stand one upon another, in some order. The rules are those of one
machine with release dates and a common deadline (J. Carlier and E. Pinson, "An Algorithm for Solving the
Job-Shop Problem", Management Science 35(2), 1989): where they end at the least, and who cannot be the lowest.
"""

from __future__ import annotations

from numba import njit

from irkit.schedule.packing_state import BY_CLIQUE, HEIGHT, LAST, MARK, Search, lift


@njit(cache=True)
def changes_fit(s: Search, height: int, limit: int) -> bool:
    """Follow what was lifted since the trail was so high, in all its cliques; False if one cannot fit.

    A search by offset goes without the second rule: it is as fast again, and comes to others.
    """
    top = height
    while top < s.counts[HEIGHT]:
        until = s.counts[HEIGHT]
        for lifts in range(1 + s.counts[BY_CLIQUE]):
            s.counts[MARK] += 1
            for place in range(top, until):
                clique = _refusing(s, s.trail[place, 0], limit, lifts)
                if clique >= 0:
                    s.blame[clique] += 1
                    s.counts[LAST] = clique
                    return False
        top = until
    return True


@njit(cache=True)
def _refusing(s: Search, buffer: int, limit: int, lifts: int) -> int:
    """The clique of `buffer` that has no room, of those not looked at under this mark; or -1."""
    for at in range(s.clique_at[buffer], s.clique_at[buffer + 1]):
        clique = s.cliques[at]
        if s.seen[clique] == s.counts[MARK]:
            continue
        s.seen[clique] = s.counts[MARK]
        if not (_lift_members(s, clique, limit) if lifts else _fits(s, clique, limit)):
            return int(clique)
    return -1


@njit(cache=True)
def _fits(s: Search, clique: int, limit: int) -> bool:
    """Whether it ends below the limit when its members follow one another, the lowest first.

    Who is not above `free` has room with all that are behind it, so it is enough to look at the others.
    """
    free = limit - s.rest[clique]
    count = total = top = 0
    for at in range(s.member_at[clique], s.member_at[clique + 1]):
        member = s.members[at]
        if s.placed[member] == 0 and s.low[member] > free:
            s.line[count] = member
            total += s.sizes[member]
            top = max(top, s.low[member])
            count += 1
    if top + total <= limit:
        return True
    for at in range(1, count):
        member, to = s.line[at], at
        while to > 0 and s.low[s.line[to - 1]] < s.low[member]:
            s.line[to] = s.line[to - 1]
            to -= 1
        s.line[to] = member
    behind = 0
    for at in range(count):
        behind += s.sizes[s.line[at]]
        if s.low[s.line[at]] + behind > limit:
            return False
    return True


@njit(cache=True)
def _lift_members(s: Search, clique: int, limit: int) -> bool:
    """Lift who cannot be below all of some others: above the first of these to end. False: no room."""
    free = limit - s.rest[clique]
    count = 0
    some = False
    for at in range(s.member_at[clique], s.member_at[clique + 1]):
        member = s.members[at]
        if s.placed[member] == 1:
            continue
        some |= s.low[member] > free
        end, to = s.low[member] + s.sizes[member], count
        while to > 0 and s.low[s.line[to - 1]] + s.sizes[s.line[to - 1]] < end:
            s.line[to] = s.line[to - 1]
            to -= 1
        s.line[to] = member
        count += 1
    if not some:
        return True
    for at in range(count):
        member = s.line[at]
        if s.low[member] <= free:
            continue
        end = _end_below(s, member, count, limit)
        if end + s.sizes[member] > limit:
            return False
        if end > s.low[member]:
            lift(s, member, end, int(s.hole[member]))
    return True


@njit(cache=True)
def _end_below(s: Search, member: int, count: int, limit: int) -> int:
    """Where one ends at the least that must lie below `member`, of `count` in the line, who ends last first;
    or -1 if none must."""
    room = limit - s.low[member] - s.sizes[member]
    for at in range(count):
        other = s.line[at]
        if other == member:
            continue
        room -= s.sizes[other]
        if room < 0:
            return int(s.low[other] + s.sizes[other])
    return -1
