"""Constants that a vEU reads again and again stay in its shared memory until it has read them last.

A vEU copies its residents before the first rTask that reads one. They lie in [0, t - s), where t is what the
schedule plans of shared memory and s the largest scratch of any rTask there from that one to the last that
reads one; scratch is at the top end, the walker's tables above it. What other rTasks have as scratch may be
the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.block_memory import ALIGNMENT, aligned, walker_bytes
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Append, Boxes, Buffer, Resident, Schedule
from irkit.schedule.wellformed import check_appends

Bytes = NDArray[np.int64]

RESIDENT_ALIGNMENT = ALIGNMENT
"""Bytes; one 128-bit load."""


@dataclass
class Pinned:
    """A constant cut over a range of vEUs: vEU `first + l` keeps the box `boxes[l]` (lanes×rank×2)."""

    buffer: int
    first: int
    boxes: Boxes
    nbytes: int
    uses: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @property
    def veus(self) -> range:
        """The vEUs that keep a part."""
        return range(self.first, self.first + len(self.boxes))

    def saved_bytes(self) -> int:
        """Bytes per vEU that need not be read again."""
        return (len(self.uses) - 1) * self.nbytes


def lane_boxes(boxes: Boxes, veus: int) -> Boxes | None:
    """The one box that each lane reads, [lanes, rank, 2]; None if some lane reads several."""
    first = boxes[:veus]
    if not np.array_equal(first[np.arange(len(boxes)) % veus], boxes):
        return None
    return first


def contiguous(boxes: Boxes, shape: Sequence[int]) -> bool:
    """Whether each box is one run of bytes in a row-major array: single indices, a range, the rest."""
    extent = boxes[:, :, 1] - boxes[:, :, 0]
    if (extent <= 0).any():
        return False
    ones = np.ones((len(boxes), 1), bool)
    single = np.logical_and.accumulate(extent == 1, axis=1)
    whole = np.logical_and.accumulate((extent == np.array(shape))[:, ::-1], axis=1)[:, ::-1]
    # At some dimension: single indices before it, everything after it.
    before, after = np.hstack([ones, single[:, :-1]]), np.hstack([whole[:, 1:], ones])
    return bool((before & after).any(axis=1).all())


def pinnable(buffer: Buffer, boxes: Boxes, veus: int) -> Boxes | None:
    """The lanes' boxes of a constant operand that can be resident, else None."""
    lanes = lane_boxes(boxes, veus)
    if lanes is None or not buffer.shape or not contiguous(lanes, buffer.shape):
        return None
    return lanes


def pinned_bytes(lanes: Boxes, itemsize: int) -> int:
    """Bytes of the largest lane's box."""
    return int((lanes[:, :, 1] - lanes[:, :, 0]).prod(axis=1).max()) * itemsize


def scratch_of(schedule: Schedule) -> Bytes:
    """Scratch of an rTask of append a on vEU v, in whole units of the alignment: [appends, vEUs]."""
    scratch = np.zeros((len(schedule.appends), schedule.device.veus), np.int64)
    for number, append in enumerate(schedule.appends):
        launch = schedule.launches[append.launch]
        end = append.first_veu + min(launch.tasks, append.veus)
        scratch[number, append.first_veu : end] = aligned(launch.scratch_bytes)
    return scratch


def scratch_beside(schedule: Schedule) -> list[int]:
    """Of each vEU, the largest scratch of any rTask from the first that reads a resident to the last."""
    scratch = scratch_of(schedule)
    reads = np.zeros(scratch.shape, bool)
    for number, append in enumerate(schedule.appends):
        if append.residents:
            tasks = schedule.launches[append.launch].tasks
            end = append.first_veu + min(tasks, append.veus)
            reads[number, append.first_veu : end] = True
    begun, goes_on = (np.logical_or.accumulate(x, axis=0) for x in (reads, reads[::-1]))
    return (scratch * (begun & goes_on[::-1])).max(axis=0, initial=0).tolist()


class Kept:
    """What vEUs keep: from append `first` to `last` each, up to byte `end`."""

    def __init__(self, schedule: Schedule) -> None:
        self._scratch = scratch_of(schedule)
        veus = schedule.device.veus
        self.first, self.last = np.full(veus, len(self._scratch)), np.full(veus, -1)
        self.end = np.zeros(veus, np.int64)

    def with_more(self, pinned: Pinned, offset: int) -> Kept:
        """The same and one thing more, from `offset` on."""
        made = copy(self)
        made.first, made.last, made.end = self.first.copy(), self.last.copy(), self.end.copy()
        where = slice(pinned.veus.start, pinned.veus.stop)
        made.first[where] = np.minimum(made.first[where], pinned.uses[0][0])
        made.last[where] = np.maximum(made.last[where], pinned.uses[-1][0])
        made.end[where] = np.maximum(made.end[where], aligned(offset + pinned.nbytes))
        return made

    def needed(self, veu: int) -> int:
        """Bytes of shared memory that a vEU takes while it keeps what it keeps, scratch included."""
        beside = self._scratch[self.first[veu] : self.last[veu] + 1, veu]
        return int(self.end[veu] + beside.max(initial=0))


def planned_bytes(schedule: Schedule) -> int:
    """What residents and scratch take of shared memory on the vEU that needs most."""
    kept = np.zeros(schedule.device.veus, np.int64)
    for append in schedule.appends:
        launch = schedule.launches[append.launch]
        lanes = kept[append.first_veu : append.first_veu + min(launch.tasks, append.veus)]
        for resident in append.residents:
            access = launch.reads[resident.operand]
            size = pinned_bytes(access.boxes, schedule.buffers[access.buffer].itemsize)
            np.maximum(lanes, aligned(resident.offset + size), out=lanes)
    together = kept + np.array(scratch_beside(schedule), np.int64)
    return int(max(together.max(initial=0), scratch_of(schedule).max(initial=0)))


def pin_residents(
    schedule: Schedule, streaming: Collection[str] = (), beside: Sequence[Schedule] = ()
) -> Schedule:
    """The schedule with `residents` filled in: constants that a vEU reads in two or more appends.

    Greedy by the bytes saved. An operand qualifies if each vEU reads one box of it, contiguous, and
    the same in all the appends; all of them give it the same offset. Launches of the symbols `streaming`
    read nothing from shared memory; the schedules `beside` are walked by the same walker. Nothing changes on
    a device without it.

    `notes`: "resident_bytes", the most that one vEU keeps, and "resident_operands", how many operands
    of appends are read from there.
    """
    check_appends(schedule)
    feet = Footprints(schedule.buffers, schedule.launches)
    room = schedule.device.shared_bytes - walker_bytes(schedule, *beside)
    kept = Kept(schedule)
    residents: list[list[Resident]] = [[] for _ in schedule.appends]
    taken: list[tuple[Pinned, int]] = []
    for pinned in sorted(
        _candidates(schedule, feet, streaming), key=Pinned.saved_bytes, reverse=True
    ):
        offset = _free_offset(pinned, taken)
        more = kept.with_more(pinned, offset)
        if max(map(more.needed, pinned.veus)) > room:
            continue
        kept = more
        taken.append((pinned, offset))
        for append, operand in pinned.uses:
            residents[append].append(Resident(operand, offset))
    appends: list[Append] = [
        replace(append, residents=tuple(sorted(found, key=lambda r: r.operand)))
        for append, found in zip(schedule.appends, residents, strict=True)
    ]
    notes = dict(schedule.notes)
    notes["resident_bytes"] = max((offset + p.nbytes for p, offset in taken), default=0)
    notes["resident_operands"] = sum(len(found) for found in residents)
    return replace(schedule, appends=appends, notes=notes)


def _candidates(schedule: Schedule, feet: Footprints, streaming: Collection[str]) -> list[Pinned]:
    """Operands that at least two appends read alike, in order of first use."""
    if not schedule.device.shared_bytes:
        return []
    found: dict[tuple[int, int, bytes], Pinned] = {}
    for number, append in enumerate(schedule.appends):
        if schedule.launches[append.launch].symbol in streaming:
            continue
        for operand, access in feet.constant_reads(append.launch):
            buffer = schedule.buffers[access.buffer]
            lanes = pinnable(buffer, access.boxes, append.veus)
            if lanes is None:
                continue
            nbytes = pinned_bytes(lanes, buffer.itemsize)
            key = (access.buffer, append.first_veu, lanes.tobytes())
            pinned = found.setdefault(key, Pinned(access.buffer, append.first_veu, lanes, nbytes))
            pinned.uses.append((number, operand))
    return [pinned for pinned in found.values() if len({a for a, _ in pinned.uses}) > 1]


def _free_offset(pinned: Pinned, taken: list[tuple[Pinned, int]]) -> int:
    """The first gap that is free on all vEUs of `pinned`."""
    blocks = sorted(
        (start, start + other.nbytes)
        for other, start in taken
        if other.first < pinned.first + len(pinned.boxes)
        and pinned.first < other.first + len(other.boxes)
    )
    offset = 0
    for start, end in blocks:
        if offset + pinned.nbytes <= start:
            break
        offset = max(offset, -(-end // RESIDENT_ALIGNMENT) * RESIDENT_ALIGNMENT)
    return offset
