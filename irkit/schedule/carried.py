"""Values that carry their own flag: an operand that arrives word by word, with no wait.

A wait tells that all that happened before it is seen, and so costs a vEU a fence, a signal, and the reading
of what was written. Where nothing but the elements of one operand is awaited, each can say itself that it is
there: a 64-bit word holds an element of four bytes and the number of the run. Its *source* stores such words,
each whole or not at all, and the vEU that reads looks at them until all are of this run (as in the protocol
LL of NCCL). Nothing else is ordered by them: an element that is carried orders no other bytes, nor what was
read before. That is what the proof takes of them, rule 'carried', and no more.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.footprint import Footprints, Touch, overlaps
from irkit.schedule.mail import ELEMENT_BYTES, NO_STAGE, Stage
from irkit.schedule.model import Access, Boxes, Schedule

MOST_WORDS = 1024
"""Elements of an operand that is carried at most: every vEU that reads it looks at each."""


@dataclass(frozen=True)
class Source:
    """The append whose result `result` an operand is."""

    append: int
    result: int


class Carriage:
    """Which operands of a schedule can be carried, from where, and which conflicts that settles."""

    def __init__(self, schedule: Schedule, feet: Footprints) -> None:
        self._schedule, self._feet = schedule, feet
        self._append_of = {append.launch: n for n, append in enumerate(schedule.appends)}
        self._known: dict[tuple[int, int], Source | str] = {}
        # Launches of one rOperator share their boxes.
        self._in_rows: dict[tuple[int, tuple[int, ...]], bool] = {}

    def source(self, number: int, operand: int) -> Source | str:
        """Where read `operand` of append `number` comes from, or why it cannot be carried."""
        key = number, operand
        if key not in self._known:
            self._known[key] = self._why_not(number, operand) or self._one_writer(number, operand)
        return self._known[key]

    def sources(self) -> dict[tuple[int, int], Source]:
        """The source of each operand that the appends carry, by append and operand; of one that cannot be
        carried, none."""
        found = {
            (number, operand): self.source(number, operand)
            for number, append in enumerate(self._schedule.appends)
            for operand in append.carried
        }
        return {key: source for key, source in found.items() if isinstance(source, Source)}

    def __contains__(self, pair: tuple[Touch, Touch]) -> bool:
        """Whether the second touch reads, carried, what the first writes: each element is
        read once it is there."""
        a, b = pair
        if not a.writes or b.writes:
            return False
        number = self._append_of[b.launch]
        if b.operand not in self._schedule.appends[number].carried:
            return False
        return self.source(number, b.operand) == Source(self._append_of[a.launch], a.operand)

    def _why_not(self, number: int, operand: int) -> str | None:
        schedule = self._schedule
        launch = schedule.launches[schedule.appends[number].launch]
        if not 0 <= operand < len(launch.reads):
            return "there is no such operand"
        if schedule.device.kind == "cpu":
            return "a CPU's vEUs wait on counters alone"
        access = launch.reads[operand]
        buffer = schedule.buffers[access.buffer]
        root = schedule.buffers[self._feet.places[access.buffer].root]
        if root.space not in ("arena", "output") or any(size < 0 for size in buffer.shape):
            return f"'{buffer.name}' is {root.space} memory, or of a size that is not known"
        if buffer.itemsize != ELEMENT_BYTES or buffer.nbytes > MOST_WORDS * ELEMENT_BYTES:
            return f"'{buffer.name}' has no elements of {ELEMENT_BYTES} bytes, or more than {MOST_WORDS}"
        if not _reads_whole(access, buffer.shape):
            return f"not every rTask reads all of '{buffer.name}'"
        if any(read == operand for read, _ in launch.in_place):
            return f"'{buffer.name}' is updated in place"
        return None

    def _one_writer(self, number: int, operand: int) -> Source | str:
        """The one launch that writes what is read, as the same buffer, in an earlier append."""
        schedule = self._schedule
        launch = schedule.appends[number].launch
        buffer = schedule.launches[launch].reads[operand].buffer
        name = schedule.buffers[buffer].name
        touches = self._feet.touches[self._feet.places[buffer].root]
        read = next(
            t for t in touches if (t.launch, t.operand, t.writes) == (launch, operand, False)
        )
        writers = [t for t in touches if t.writes and overlaps(t, read)]
        if len(writers) != 1 or writers[0].buffer != buffer:
            return f"'{name}' is not written by one launch, as it is read"
        writer = writers[0]
        source = schedule.launches[writer.launch]
        if self._append_of[writer.launch] >= number or writer.launch >= launch:
            return f"what writes '{name}' is no earlier append"
        if any(write == writer.operand for _, write in source.in_place):
            return f"'{name}' is updated in place"
        if not self._is_in_rows(source.writes[writer.operand], schedule.buffers[buffer].shape):
            return f"an rTask writes '{name}' in no rows at one distance"
        return Source(self._append_of[writer.launch], writer.operand)

    def _is_in_rows(self, access: Access, shape: tuple[int, ...]) -> bool:
        key = id(access.boxes), shape
        if key not in self._in_rows:
            self._in_rows[key] = written_pieces(access.boxes, shape) is not None
        return self._in_rows[key]


def _reads_whole(access: Access, shape: tuple[int, ...]) -> bool:
    whole = np.array([(0, size) for size in shape], np.int64).reshape(-1, 2)
    return bool((access.boxes == whole).all())


def written_pieces(boxes: Boxes, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
    """What each box (tasks×rank×2) is in row-major elements: first, rows, elements of a row, distance of
    rows (tasks×4). None where one is no rows at one distance."""
    found = [_piece(box, shape) for box in boxes]
    return None if None in found else np.array(found, np.int64).reshape(-1, 4)


def _piece(box: NDArray[np.int64], shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    extents = (box[:, 1] - box[:, 0]).tolist()
    if 0 in extents:
        return 0, 0, 1, 0
    strides = [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))]
    first = sum(int(low) * stride for low, stride in zip(box[:, 0], strides, strict=True))
    inner = len(shape)
    while inner and extents[inner - 1] == shape[inner - 1]:
        inner -= 1
    run = extents[inner - 1] * strides[inner - 1] if inner else int(np.prod(shape, dtype=np.int64))
    several = [d for d in range(max(inner - 1, 0)) if extents[d] > 1]
    if len(several) > 1:
        return None
    return (first, extents[several[0]], run, strides[several[0]]) if several else (first, 1, run, 0)


def carry_values(schedule: Schedule, anywhere: Container[str]) -> Schedule:
    """The schedule with operands carried that were waited for, where that leaves fewer waits.

    `anywhere` are the symbols whose launches can read operands and store results wherever these lie. An
    operand is carried whose append waits for its source, if it then need not wait for
    it; waits are derived anew. `notes`: "carried", how many operands are.
    """
    from irkit.schedule.waits import derive_waits

    feet = Footprints(schedule.buffers, schedule.launches)
    carriage = Carriage(schedule, feet)
    chosen: dict[int, dict[int, int]] = {}
    for number, append in enumerate(schedule.appends):
        launch = schedule.launches[append.launch]
        if launch.symbol not in anywhere or not append.waits:
            continue
        for operand in range(len(launch.reads)):
            source = carriage.source(number, operand)
            if not isinstance(source, Source) or source.append not in append.waits:
                continue
            if schedule.launches[schedule.appends[source.append].launch].symbol in anywhere:
                chosen.setdefault(number, {})[operand] = source.append
    made = derive_waits(_carrying(schedule, chosen), feet)
    # What is waited for all the same comes with the wait.
    kept = {
        number: {o: s for o, s in operands.items() if s not in made.appends[number].waits}
        for number, operands in chosen.items()
    }
    if kept != chosen:
        made = derive_waits(_carrying(schedule, kept), feet)
    before, after = (sum(len(a.waits) for a in s.appends) for s in (schedule, made))
    if after >= before:
        return schedule
    carried = sum(len(append.carried) for append in made.appends)
    return replace(made, notes={**made.notes, "carried": carried})


def _carrying(schedule: Schedule, chosen: dict[int, dict[int, int]]) -> Schedule:
    appends = [
        replace(append, carried=tuple(sorted(chosen.get(number, ()))))
        for number, append in enumerate(schedule.appends)
    ]
    return replace(schedule, appends=appends)


def carried_stage(schedule: Schedule) -> Stage:
    """What the walker of a schedule carries."""
    if not any(append.carried for append in schedule.appends):
        return NO_STAGE
    found = Carriage(schedule, Footprints(schedule.buffers, schedule.launches)).sources()
    sizes = {source: _elements(schedule, source) for source in found.values()}
    return Stage.of(
        [(number, sizes[source]) for (number, _), source in found.items()],
        [(source.append, elements) for source, elements in sizes.items()],
    )


def _elements(schedule: Schedule, source: Source) -> int:
    launch = schedule.launches[schedule.appends[source.append].launch]
    return schedule.buffers[launch.writes[source.result].buffer].nbytes // ELEMENT_BYTES
