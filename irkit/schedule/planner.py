"""Memory: an offset for every arena buffer, reusing bytes only where the schedule orders their use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Mask
from irkit.schedule.footprint import Footprints, resolve_views
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.lifetimes import Lifetimes, lifetimes
from irkit.schedule.live_sets import all_cliques, chain_covers, heavy_cliques, live_sets
from irkit.schedule.model import Schedule
from irkit.schedule.pool import Pool, SearchBounds, first_packing
from irkit.schedule.residents import planned_bytes

ARENA_ALIGNMENT = 256
"""Bytes; what a CUDA allocation guarantees, and the largest vector access."""

ROW_ALIGNMENT = 16
"""Bytes per row of the batch."""

DEFAULT_BOUNDS = SearchBounds()

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Packing:
    """Offsets of the buffers of a pool, what a greedy packing reached, and what none can be below.

    `lower_bound`: the bytes of the heaviest set found of buffers that are in use together in pairs;
    `proved_bound`: the same, or more where a search has shown that no packing is lower.
    """

    offsets: _Ints
    height: int
    greedy: int
    lower_bound: int
    proved_bound: int

    def figures(self) -> dict[str, int | float]:
        """For reports; bytes, and the ratio of the packing to the lower bound."""
        return {
            "bytes": self.height,
            "greedy_bytes": self.greedy,
            "lower_bound": self.lower_bound,
            "proved_bound": self.proved_bound,
            "ratio": self.height / self.lower_bound if self.lower_bound else 1.0,
        }


def plan_memory(schedule: Schedule, bounds: SearchBounds = DEFAULT_BOUNDS) -> Schedule:
    """The schedule with `offset` of every "arena", "rows" and "constant" buffer, and the sizes of all
    spaces, `shared_bytes` among them.

    Two buffers share bytes only if every rTask that touches the one happens before every rTask that
    touches the other. Views take no space; their `offset` is filled in for convenience.

    Greedy packings are tried first, then an exact search within `bounds` where none is at the lower bound.
    `notes` has the figures of `Packing`: "arena_bytes", "arena_greedy_bytes", "arena_lower_bound",
    "arena_proved_bound", "arena_ratio" (1.0 when nothing is needed); and the same with "row_" in bytes per
    row. All sizes count as rounded up to the alignment.

    Raises ScheduleError if the schedule deadlocks or is not well formed.
    """
    feet = Footprints(schedule.buffers, schedule.launches)
    order = HappensBefore(schedule)
    lives = lifetimes(schedule, feet, order)
    offsets: dict[int, int] = {}
    totals: dict[str, int] = {}
    notes = dict(schedule.notes)
    for space, alignment, name in (
        ("arena", ARENA_ALIGNMENT, "arena"),
        ("rows", ROW_ALIGNMENT, "row"),
    ):
        pool = _pool(schedule, lives, space, alignment)
        packing = _packed(pool, live_sets(pool, lives, order), bounds)
        offsets.update(zip(pool.buffers.tolist(), packing.offsets.tolist(), strict=True))
        totals[space] = packing.height
        notes |= {f"{name}_{what}": figure for what, figure in packing.figures().items()}
    constants, constant_bytes = constant_offsets(schedule)
    offsets |= constants
    buffers = [
        replace(
            buffer, offset=offsets[place.root] + place.offset if place.root in offsets else None
        )
        for buffer, place in zip(schedule.buffers, resolve_views(schedule.buffers), strict=True)
    ]
    return replace(
        schedule,
        buffers=buffers,
        arena_bytes=totals["arena"],
        row_bytes=totals["rows"],
        constant_bytes=constant_bytes,
        shared_bytes=planned_bytes(schedule),
        notes=notes,
    )


def constant_offsets(schedule: Schedule) -> tuple[dict[int, int], int]:
    """Offsets of the constants, one behind another, those of one source in one place; and the end."""
    offsets: dict[int, int] = {}
    places: dict[str | None, int] = {}
    end = 0
    for index, buffer in enumerate(schedule.buffers):
        if buffer.space != "constant" or buffer.parent is not None:
            continue
        if buffer.source not in places:
            places[buffer.source] = end
            end += -(-buffer.nbytes // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        offsets[index] = places[buffer.source]
    return offsets, end


def _pool(schedule: Schedule, lives: Lifetimes, space: str, alignment: int) -> Pool:
    chosen = [
        index
        for index, buffer in enumerate(schedule.buffers)
        if buffer.space == space and buffer.parent is None
    ]
    buffers = np.array(chosen, np.intp)
    exact = np.array([schedule.buffers[index].nbytes for index in chosen], np.int64)
    sizes = -(-exact // alignment) * alignment
    precedence = lives.precedence(buffers)
    used = ~precedence.diagonal()
    before = precedence & used[:, None] & used
    rivals = ~(precedence | precedence.T)
    return Pool(buffers, sizes, before, rivals)


def _packed(pool: Pool, live: Mask, bounds: SearchBounds) -> Packing:
    """The best greedy packing, or the best that the search finds where that is above the lower bound."""
    covers = chain_covers(pool)
    cliques = heavy_cliques(pool, live, covers)
    bound = pool.heaviest(cliques)
    greedy = pool.best(bound, first_packing(pool, covers))
    height = pool.height(greedy)
    if height <= bound or not 0 < len(pool.sizes) <= bounds.buffers:
        return Packing(greedy, height, height, bound, bound)
    cliques = all_cliques(pool, live, cliques)
    bound = pool.heaviest(cliques)
    # Its loops are compiled: few plans need them.
    from irkit.schedule.exact_packing import ExactPacking

    rivals = pool.rivals & ~np.eye(len(pool.sizes), dtype=bool)
    found = ExactPacking(pool.sizes, rivals, cliques, bounds).improve(greedy, bound)
    return Packing(found.offsets, found.height, height, bound, found.bound)
