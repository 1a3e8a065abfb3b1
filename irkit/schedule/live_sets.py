"""Buffers that are in use together: what no packing can be below.

A *clique* is a set of buffers of which any two may be in use at once: its bytes are a lower bound. Cliques
grow from antichains, and from the buffers that must be live at an rTask (written before or by it, still used
by or after it), by taking in whatever is in use together with all members, the largest and then the most
contended first. Where rTasks follow one another in a line, the heaviest is the most bytes that are live at
any time.
"""

from __future__ import annotations

import numpy as np

from irkit.schedule.box_overlap import Mask
from irkit.schedule.chain_cover import ChainCover
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.lifetimes import Lifetimes
from irkit.schedule.pool import Covers, Pool

_SEEDS = 12
_COVERS = 4
_MAX_COVER = 4096
_MAX_CLIQUES = 1024


def chain_covers(pool: Pool) -> Covers:
    """Chain covers of the buffers of at least so many bytes, for the few most telling sizes.

    The antichain that belongs to a cover is the largest set of such buffers in use together.
    """
    used = np.flatnonzero(pool.rivals.diagonal())
    sizes, counts = np.unique(pool.sizes[used], return_counts=True)
    atleast = counts[::-1].cumsum()[::-1]
    telling = np.argsort(-(sizes * atleast), kind="stable")[:_COVERS]
    chosen = [used[pool.sizes[used] >= sizes[index]] for index in telling]
    return [
        (members, ChainCover(pool.before[np.ix_(members, members)]))
        for members in chosen
        if len(members) <= _MAX_COVER
    ]


def heavy_cliques(pool: Pool, live: Mask, covers: Covers) -> Mask:
    """A few cliques that are likely to be heavy: [cliques, buffers]."""
    heaviest = np.argsort(-(live @ pool.sizes), kind="stable")
    seeds = [live[row] for row in heaviest[:_SEEDS]]
    for members, cover in covers:
        seed = np.zeros(len(pool.sizes), bool)
        seed[members] = cover.antichain()
        seeds.append(seed)
    return _grown(pool, seeds)


def all_cliques(pool: Pool, live: Mask, known: Mask) -> Mask:
    """One for each set that is live at an rTask, the heaviest ones where they are very many; and each buffer
    is in one."""
    distinct = np.unique(live, axis=0)
    heaviest = np.argsort(-(distinct @ pool.sizes), kind="stable")[:_MAX_CLIQUES]
    cliques = np.concatenate([known, _grown(pool, list(distinct[heaviest]))])
    alone = np.eye(len(pool.sizes), dtype=bool)[~cliques.any(axis=0)]
    return np.unique(np.concatenate([cliques, _grown(pool, list(alone))]), axis=0)


def _grown(pool: Pool, seeds: list[Mask]) -> Mask:
    urgency = np.lexsort((-(pool.rivals @ pool.sizes), -pool.sizes))
    rivals = pool.rivals[np.ix_(urgency, urgency)]
    used = rivals.diagonal()
    grown = np.zeros((len(seeds), len(pool.sizes)), bool)
    for row, seed in enumerate(seeds):
        members = seed[urgency]
        left = rivals[members].all(axis=0) & ~members & used
        while left.any():
            first = int(np.argmax(left))
            members[first] = True
            left &= rivals[first]
            left[first] = False
        grown[row, urgency] = members
    return grown


def live_sets(pool: Pool, lives: Lifetimes, order: HappensBefore) -> Mask:
    """For the first rTask of each append, the buffers that must be live at it: [appends, buffers]."""
    written, read = lives.written[pool.buffers], lives.read[pool.buffers]
    appends = order.schedule.appends
    live = np.zeros((len(appends), len(pool.buffers)), bool)
    for number, append in enumerate(appends):
        clock = order.lanes(number)[0].copy()
        clock[append.first_veu] += 1
        known = np.flatnonzero(clock)
        begun = (clock[known] >= written[:, known]).any(axis=1)
        live[number] = begun & (read[:, append.first_veu] >= clock[append.first_veu])
    return live
