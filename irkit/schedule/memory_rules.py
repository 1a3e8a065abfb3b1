"""Rules 'arena' and 'shared': planned bytes are where they may be, and are nobody else's meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.block_memory import ALIGNMENT, aligned, walker_bytes
from irkit.schedule.footprint import Footprints, batched
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.lifetimes import lifetimes
from irkit.schedule.model import Append, Resident, Schedule
from irkit.schedule.planner import ARENA_ALIGNMENT, ROW_ALIGNMENT
from irkit.schedule.residents import (
    RESIDENT_ALIGNMENT,
    Pinned,
    pinnable,
    pinned_bytes,
    scratch_beside,
    scratch_of,
)
from irkit.schedule.wellformed import describe, reject

_CHUNK = 1 << 14


def check_arena(schedule: Schedule, feet: Footprints, order: HappensBefore) -> None:
    """Buffers that share bytes are never in use together."""
    lives = lifetimes(schedule, feet, order)
    for space in ("arena", "rows"):
        roots = [
            index
            for index, buffer in enumerate(schedule.buffers)
            if buffer.space == space and buffer.parent is None
        ]
        for a, b in _sharing(schedule, roots):
            free = lives.wholly_before(a, b) | lives.wholly_before(b, a)
            if not free.all():
                at = int(np.argmin(free))
                _report_sharing(schedule, feet, int(a[at]), int(b[at]))


def check_places(schedule: Schedule, feet: Footprints) -> None:
    """Every planned buffer has an aligned offset inside its space; views are where their parents are;
    constants share bytes only with themselves."""
    for size in ("arena_bytes", "row_bytes", "constant_bytes", "shared_bytes"):
        if getattr(schedule, size) < 0:
            reject("arena", f"{size} of {getattr(schedule, size)}")
    for index, buffer in enumerate(schedule.buffers):
        if buffer.parent is None and buffer.space in _SPACES:
            alignment, size = _SPACES[buffer.space]
            _check_offset(schedule, index, alignment, getattr(schedule, size))
    _check_views(schedule, feet)
    constants = [
        i for i, b in enumerate(schedule.buffers) if b.space == "constant" and b.parent is None
    ]
    for first, second in _sharing(schedule, constants):
        for a, b in zip(first, second, strict=True):
            one, other = schedule.buffers[int(a)], schedule.buffers[int(b)]
            if (one.source, one.offset, one.nbytes) != (other.source, other.offset, other.nbytes):
                reject("arena", f"constants '{one.name}' and '{other.name}' share bytes")


# Of each planned space, the alignment of its buffers and the name of its size.
_SPACES = {
    "arena": (ARENA_ALIGNMENT, "arena_bytes"),
    "rows": (ROW_ALIGNMENT, "row_bytes"),
    "constant": (ARENA_ALIGNMENT, "constant_bytes"),
}


def _check_offset(schedule: Schedule, index: int, alignment: int, total: int) -> None:
    buffer = schedule.buffers[index]
    if buffer.space != "constant" and batched(buffer) != (buffer.space == "rows"):
        reject("arena", f"'{buffer.name}' of shape {buffer.shape} cannot live in '{buffer.space}'")
    if buffer.offset is None:
        reject("arena", f"'{buffer.name}' has no offset; run plan_memory first")
    if buffer.offset % alignment:
        reject("arena", f"'{buffer.name}' at {buffer.offset} is not aligned to {alignment} bytes")
    if buffer.offset < 0 or buffer.offset + buffer.nbytes > total:
        end = buffer.offset + buffer.nbytes
        reject("arena", f"'{buffer.name}' at {buffer.offset}..{end} is outside 0..{total}")


def _check_views(schedule: Schedule, feet: Footprints) -> None:
    """A view's own offset, when given, is its root's plus its place in it."""
    for buffer, place in zip(schedule.buffers, feet.places, strict=True):
        base = schedule.buffers[place.root].offset
        if buffer.parent is None or buffer.offset is None:
            continue
        if base is None or buffer.offset != base + place.offset:
            reject("arena", f"view '{buffer.name}' at {buffer.offset} is not where its parent is")


def _sharing(
    schedule: Schedule, indices: list[int]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Pairs of buffers with a common byte, in chunks of pairs."""
    start = np.array([schedule.buffers[index].offset for index in indices], np.int64)
    size = np.array([schedule.buffers[index].nbytes for index in indices], np.int64)
    by_start = np.argsort(start, kind="stable")
    start, size, roots = start[by_start], size[by_start], np.array(indices, np.intp)[by_start]
    # In order of start, a buffer's partners are those that start before it ends.
    upto = np.searchsorted(start, start + size, side="left")
    first: list[NDArray[np.intp]] = []
    second: list[NDArray[np.intp]] = []
    pending = 0
    for index in range(len(roots)):
        partners = roots[index + 1 : upto[index]]
        first.append(np.full(len(partners), roots[index]))
        second.append(partners)
        pending += len(partners)
        if pending and (pending >= _CHUNK or index + 1 == len(roots)):
            yield np.concatenate(first), np.concatenate(second)
            first, second, pending = [], [], 0


def _report_sharing(schedule: Schedule, feet: Footprints, a: int, b: int) -> None:
    append_of = {append.launch: number for number, append in enumerate(schedule.appends)}
    users = [
        ", ".join(
            describe(schedule, n) for n in sorted({append_of[t.launch] for t in feet.touches[i]})
        )
        for i in (a, b)
    ]
    reject(
        "arena",
        f"'{schedule.buffers[a].name}' and '{schedule.buffers[b].name}' share bytes but neither is "
        f"done with before the other begins: the first is used by {users[0]}, the second by {users[1]}",
    )


def check_shared(schedule: Schedule, feet: Footprints) -> None:
    """Residents are constants in one piece; on each vEU they, the scratch of all rTasks from the first that
    reads one of them to the last, and the walker's tables fit side by side into what is planned, and that
    into what the device has."""
    for veu, used in enumerate(scratch_of(schedule).max(axis=0, initial=0).tolist()):
        if used > schedule.shared_bytes:
            reject("shared", f"vEU {veu} needs {used} bytes of scratch, {_planned(schedule)}")
    walker = walker_bytes(schedule)
    if schedule.shared_bytes % ALIGNMENT:
        reject("shared", f"{_planned(schedule)}, not a multiple of {ALIGNMENT}")
    if schedule.device.kind != "cpu" and (
        schedule.shared_bytes + walker > schedule.device.shared_bytes
    ):
        reject(
            "shared",
            f"{_planned(schedule)} and the walker needs {walker}, a vEU has {_have(schedule)}",
        )
    beside = scratch_beside(schedule)
    kept: dict[tuple[int, int, bytes, int], Pinned] = {}
    for number, append in enumerate(schedule.appends):
        for resident in append.residents:
            pinned = _pinned(schedule, feet, number, resident)
            _check_fits(schedule, number, resident, pinned, beside)
            kept[pinned.buffer, pinned.first, pinned.boxes.tobytes(), resident.offset] = pinned
    blocks = [(key[-1], pinned) for key, pinned in kept.items()]
    for i, (offset, pinned) in enumerate(blocks):
        for other_offset, other in blocks[:i]:
            _check_apart(schedule, (offset, pinned), (other_offset, other))


def _planned(schedule: Schedule) -> str:
    return f"{schedule.shared_bytes} bytes of shared memory are planned"


def _have(schedule: Schedule) -> str:
    return f"{schedule.device.shared_bytes} bytes on '{schedule.device.name}'"


def _pinned(schedule: Schedule, feet: Footprints, number: int, resident: Resident) -> Pinned:
    append: Append = schedule.appends[number]
    access = dict(feet.constant_reads(append.launch)).get(resident.operand)
    where = f"{describe(schedule, number)} operand {resident.operand}"
    if access is None:
        reject("shared", f"{where} is resident but not a constant that it reads")
    buffer = schedule.buffers[access.buffer]
    lanes = pinnable(buffer, access.boxes, append.veus)
    if lanes is None:
        reject("shared", f"{where} is resident but not one contiguous box per vEU")
    return Pinned(access.buffer, append.first_veu, lanes, pinned_bytes(lanes, buffer.itemsize))


def _check_fits(
    schedule: Schedule, number: int, resident: Resident, pinned: Pinned, scratch: list[int]
) -> None:
    where = f"{describe(schedule, number)} operand {resident.operand} at {resident.offset}"
    if resident.offset < 0 or resident.offset % RESIDENT_ALIGNMENT:
        reject("shared", f"{where} is not aligned to {RESIDENT_ALIGNMENT} bytes")
    for veu in pinned.veus:
        needed = aligned(resident.offset + pinned.nbytes) + scratch[veu]
        if needed > schedule.shared_bytes:
            reject("shared", f"{where}: vEU {veu} needs {needed} bytes, {_planned(schedule)}")


def _check_apart(schedule: Schedule, a: tuple[int, Pinned], b: tuple[int, Pinned]) -> None:
    (start_a, one), (start_b, two) = a, b
    common = range(max(one.veus.start, two.veus.start), min(one.veus.stop, two.veus.stop))
    apart = start_a + one.nbytes <= start_b or start_b + two.nbytes <= start_a
    if apart or not common:
        return
    same = one.buffer == two.buffer and start_a == start_b
    for veu in common:
        boxes = one.boxes[veu - one.first], two.boxes[veu - two.first]
        if not (same and np.array_equal(*boxes)):
            reject(
                "shared",
                f"residents of '{schedule.buffers[one.buffer].name}' and "
                f"'{schedule.buffers[two.buffer].name}' overlap on vEU {veu}",
            )
