"""Memory: an offset for every arena buffer, reusing bytes only where the schedule orders their use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Indices, Mask
from irkit.schedule.chain_cover import ChainCover
from irkit.schedule.footprint import Footprints, resolve_views
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.lifetimes import Lifetimes, lifetimes
from irkit.schedule.model import Schedule
from irkit.schedule.residents import planned_bytes

ARENA_ALIGNMENT = 256
"""Bytes; what a CUDA allocation guarantees, and the largest vector access."""

ROW_ALIGNMENT = 16
"""Bytes per row of the batch."""

_SEEDS = 12
_COVERS = 4
_MAX_COVER = 4096
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """Buffers of one space, their sizes in bytes, and `before`: who is done before whom begins.

    `rivals`: who may be in use together with whom; the diagonal says who is used at all.
    """

    buffers: Indices
    sizes: _Ints
    before: Mask
    rivals: Mask
    alignment: int

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
        begin = np.concatenate([np.zeros(1, np.int64), self.aligned(np.maximum.accumulate(ends))])
        room = np.concatenate([starts, [np.iinfo(np.int64).max]]) - begin
        fits = np.flatnonzero(room >= self.sizes[index])
        return int(begin[fits[np.argmin(room[fits])] if best_fit else fits[0]])

    def aligned(self, nbytes: _Ints) -> _Ints:
        """Rounded up to the alignment."""
        return -(-nbytes // self.alignment) * self.alignment

    def height(self, offsets: _Ints) -> int:
        """Bytes up to the end of the last buffer."""
        return int((offsets + self.sizes).max(initial=0))

    def slots(self, cover: ChainCover) -> _Ints:
        """Offsets when each chain of a cover of all buffers has a slot of its own."""
        offsets, top = np.zeros(len(self.sizes), np.int64), 0
        for chain in cover.chains():
            offsets[chain] = top
            top += int(self.aligned(self.sizes[chain]).max())
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


def plan_memory(schedule: Schedule) -> Schedule:
    """The schedule with `offset` of every "arena", "rows" and "constant" buffer, and the sizes of all
    spaces, `shared_bytes` among them.

    Two buffers share bytes only if every rTask that touches the one happens before every rTask that
    touches the other. Views take no space; their `offset` is filled in for convenience.

    `notes`: "arena_bytes"; "arena_lower_bound", the bytes of the heaviest set of buffers found that
    are in use together in pairs, so that no planner under the same rule needs less; "arena_ratio" of
    the two (1.0 when nothing is needed); and the same three with "row_" in bytes per row.

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
        covers = _covers(pool)
        bound = _lower_bound(pool, lives, order, covers)
        chosen = pool.best(bound, _first_packing(pool, covers))
        offsets.update(zip(pool.buffers.tolist(), chosen.tolist(), strict=True))
        totals[space] = -(-pool.height(chosen) // alignment) * alignment
        notes[f"{name}_bytes"], notes[f"{name}_lower_bound"] = pool.height(chosen), bound
        notes[f"{name}_ratio"] = pool.height(chosen) / bound if bound else 1.0
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
    sizes = np.array([schedule.buffers[index].nbytes for index in chosen], np.int64)
    precedence = lives.precedence(buffers)
    used = ~precedence.diagonal()
    before = precedence & used[:, None] & used
    rivals = ~(precedence | precedence.T)
    return Pool(buffers, sizes, before, rivals, alignment)


def _covers(pool: Pool) -> list[tuple[Indices, ChainCover]]:
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


def _first_packing(pool: Pool, covers: list[tuple[Indices, ChainCover]]) -> _Ints:
    """One slot per chain where a cover has all buffers, else one per buffer."""
    for members, cover in covers:
        if len(members) == len(pool.sizes):
            return pool.slots(cover)
    return np.concatenate([[0], pool.aligned(pool.sizes).cumsum()[:-1]])[: len(pool.sizes)]


def _lower_bound(
    pool: Pool,
    lives: Lifetimes,
    order: HappensBefore,
    covers: list[tuple[Indices, ChainCover]],
) -> int:
    """The heaviest set of buffers found that are in use together in pairs, in bytes.

    Such sets grow from antichains, and from the buffers that must be live at an rTask (written before
    or by it, still used by or after it), by taking in whatever is in use together with all members,
    the largest and then the most contended first.
    """
    live = _live_sets(pool, lives, order)
    heaviest = np.argsort(-(live @ pool.sizes), kind="stable")
    seeds = [live[row] for row in heaviest[:_SEEDS]]
    for members, cover in covers:
        seed = np.zeros(len(pool.sizes), bool)
        seed[members] = cover.antichain()
        seeds.append(seed)
    urgency = np.lexsort((-(pool.rivals @ pool.sizes), -pool.sizes))
    return max((_grow(pool, seed, urgency) for seed in seeds), default=0)


def _grow(pool: Pool, seed: Mask, urgency: Indices) -> int:
    members = seed.copy()
    left = pool.rivals[seed].all(axis=0) & ~seed & pool.rivals.diagonal()
    for index in urgency:
        if left[index]:
            members[index] = True
            left &= pool.rivals[index]
    return int(pool.sizes[members].sum())


def _live_sets(pool: Pool, lives: Lifetimes, order: HappensBefore) -> Mask:
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
