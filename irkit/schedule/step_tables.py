"""Tables of the steps of a program with calls and loops: which records each vEU walks, and when.

`code` has a line a step (`CODE_WORDS` int64 words):

| word | a run | where a loop begins | where it ends | a question |
|---|---|---|---|---|
| 0 | RUN | BEGIN | END | ASK |
| 1 | number of the range | depth of the loop | depth of the loop | the base of what is asked for |
| 2 | how often it is run in a call | - | iterations | its offset |
| 3, 4 | the moving bases from, to | - | the line behind its beginning, - | the line to go to if it is 0 |

Behind every run all vEUs meet. A run may be cut into several: into waves where nothing waits, into appends.
A loop that goes on as long as data say so is one of as many iterations as can be counted, that begins with a
question; behind it all vEUs meet too, so that all have the same answer. How often its runs are run in a call
is not known: word 2 of them is 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irkit.errors import ArtifactError
from irkit.schedule.modes import Mode
from irkit.schedule.tables import (
    FIRST_INPUT,
    Appended,
    Operand,
    Program,
    Ran,
    Repeated,
    Table,
)

CODE_WORDS = 5
RUN, BEGIN, END, ASK = 0, 1, 2, 3
UNCOUNTED = 1 << 62
"""Iterations of a loop that nobody counts."""
Range = tuple[int, int]
MOVE_WORDS = 3
"""Words of a moving base, beside a step of each loop."""


@dataclass(frozen=True)
class StepPlaces:
    """Where a block of a GPU's persistent kernel has what of its steps, in words of one table.

    First the number of a line; then how many turns each of `depth` loops has made, how often each of `lines`
    was run, the lines, the block's range of records of each of `runs`, `moves` moving bases. It is a copy of
    `block_steps`, made when a call begins, so that a call knows nothing of the one before. Blocks meet
    `meetings` times in a call: between two runs.
    """

    lines: int = 0
    runs: int = 0
    depth: int = 0
    moves: int = 0
    meetings: int = 0

    @property
    def turns(self) -> int:
        """Where the loops' turns are."""
        return 1

    @property
    def ran(self) -> int:
        """Where it is counted how often each line was run."""
        return self.turns + self.depth

    @property
    def code(self) -> int:
        """Where the lines are."""
        return self.ran + self.lines

    @property
    def ranges(self) -> int:
        """Where the ranges are."""
        return self.code + CODE_WORDS * self.lines

    @property
    def moved(self) -> int:
        """Where the moving bases are."""
        return self.ranges + 2 * self.runs

    @property
    def words(self) -> int:
        """All of it: even, so that it is copied 16 bytes at a time; 0 where there are no steps."""
        if not self.lines:
            return 0
        words = self.moved + (MOVE_WORDS + self.depth) * self.moves
        return words + words % 2

    def names(self) -> dict[str, int]:
        """What the placeholders of the walkers become."""
        return {
            "LINES": self.lines,
            "DEPTH": self.depth,
            "TURNS_AT": self.turns,
            "RAN_AT": self.ran,
            "CODE_AT": self.code,
            "CODE_WORDS": CODE_WORDS,
            "RANGES_AT": self.ranges,
            "MOVES_AT": self.moved,
            "MOVE_WORDS": MOVE_WORDS + self.depth,
            "STEP_WORDS": self.words,
            "MEETINGS": self.meetings,
        }


NO_STEPS = StepPlaces()
"""What a program without calls and loops has."""

Loop = tuple[int, tuple["Shape", ...]]
Shape = None | Loop
"""A step as it is counted: a run, or iterations of steps."""


def places_of_steps(steps: Sequence[Shape], moves: int) -> StepPlaces:
    """Where things of these steps are in the table."""
    lines, runs, depth, met = _counted(steps)
    return StepPlaces(lines, runs, depth, moves, max(met - 1, 0))


def _counted(steps: Sequence[Shape]) -> tuple[int, int, int, int]:
    """Lines, runs, depth, and how many runs there are in a call."""
    lines, runs, depth, met = 0, 0, 0, 0
    for step in steps:
        if step is None:
            lines, runs, met = lines + 1, runs + 1, met + 1
            continue
        trips, inner = step
        of = _counted(inner)
        lines, runs, depth = lines + of[0] + 2, runs + of[1], max(depth, of[2] + 1)
        met += trips * of[3]
    return lines, runs, depth, met


def places_of(program: Program) -> StepPlaces:
    """Where things of a program's steps are in the table."""
    return places_of_steps([_shape(step) for step in program.steps], len(program.moving))


def _shape(step: Ran | Repeated) -> Shape:
    return None if isinstance(step, Ran) else (counted_trips(step), tuple(map(_shape, step.steps)))


def counted_trips(step: Repeated) -> int:
    """How often a loop runs, on a GPU. Raises ArtifactError where data say so."""
    if isinstance(step.trips, Operand):
        raise ArtifactError("a loop whose turns data decide, in a program for a GPU")
    return step.trips


def block_steps(program: Program) -> Table:
    """vEUs×words: what a block of the persistent kernel copies when a call begins (`StepPlaces`)."""
    steps, places = step_tables(program, Mode.PERSISTENT), places_of(program)
    table = np.zeros((program.veus, places.words), dtype=np.int64)
    table[:, places.code : places.ranges] = steps.code.reshape(-1)
    table[:, places.ranges : places.moved] = steps.ranges.transpose(1, 0, 2).reshape(
        program.veus, -1
    )
    table[:, places.moved : places.moved + steps.moves.size] = steps.moves.reshape(-1)
    return table


@dataclass(frozen=True)
class StepTables:
    """`code` as above; `ranges` is ranges×vEUs×2: the records of each vEU; `moves` a line a moving base: the
    base that it is, the one that it starts from, offset, and a step of each of the `depth` loops around."""

    code: Table
    ranges: Table
    moves: Table
    depth: int

    @property
    def busy(self) -> list[int]:
        """The vEUs that have any records."""
        counts = (self.ranges[:, :, 1] - self.ranges[:, :, 0]).sum(axis=0)
        return [int(v) for v in np.flatnonzero(counts)] or [0]

    @property
    def total(self) -> int | None:
        """How many records all vEUs walk in a call; None where data say so."""
        if (self.code[:, 0] == ASK).any():
            return None
        runs = self.code[self.code[:, 0] == RUN]
        lengths = (self.ranges[:, :, 1] - self.ranges[:, :, 0]).sum(axis=1)
        return int((lengths[runs[:, 1]] * runs[:, 2]).sum())


def step_tables(program: Program, mode: Mode) -> StepTables:
    """The tables of a program with steps in a mode. The records that they name are those of `build_tables`:
    the serial ones in modes `serial` and `per-op`."""
    cut = {
        Mode.SERIAL: _serial,
        Mode.PER_OP: _per_op,
        Mode.PER_WAVE: _per_wave,
        Mode.PERSISTENT: _persistent,
    }[mode]
    builder = _Builder(program, cut)
    builder.add(program.steps, 0, 1)
    first = FIRST_INPUT + len(program.ports)
    moves = [
        [first + n, m.base, m.offset, *m.steps, *[0] * (builder.depth - len(m.steps))]
        for n, m in enumerate(program.moving)
    ]
    ranges = np.array(builder.ranges, dtype=np.int64).reshape(-1, program.veus, 2)
    return StepTables(
        np.array(builder.code, dtype=np.int64).reshape(-1, CODE_WORDS),
        np.ascontiguousarray(ranges),
        np.array(moves, dtype=np.int64).reshape(len(moves), 3 + builder.depth),
        builder.depth,
    )


class _Builder:
    def __init__(
        self, program: Program, cut: Callable[[Program, Ran], Iterator[Sequence[Range]]]
    ) -> None:
        self.program, self.cut = program, cut
        self.code: list[Sequence[int]] = []
        self.ranges: list[Sequence[Range]] = []
        self.depth = 0

    def add(self, steps: Sequence[Ran | Repeated], depth: int, times: int) -> None:
        """Steps in `depth` loops that are run `times` times in a call, 0 where nobody knows."""
        self.depth = max(self.depth, depth)
        for step in steps:
            if isinstance(step, Repeated):
                self._loop(step, depth, times)
                continue
            for ranges in self.cut(self.program, step):
                self.code.append((RUN, len(self.ranges), times, *step.moving))
                self.ranges.append(ranges)

    def _loop(self, step: Repeated, depth: int, times: int) -> None:
        self.code.append((BEGIN, depth, 0, 0, 0))
        back = len(self.code)
        if not isinstance(step.trips, Operand):
            self.add(step.steps, depth + 1, times * step.trips)
            self.code.append((END, depth, step.trips, back, 0))
            return
        self.code.append(())
        self.add(step.steps, depth + 1, 0)
        self.code.append((END, depth, UNCOUNTED, back, 0))
        self.code[back] = (ASK, step.trips.base, step.trips.offset, len(self.code), 0)


def _records(veu: int, appends: Sequence[Appended]) -> int:
    """How many rTasks of some appends a vEU runs."""
    found = 0
    for append in appends:
        lane = veu - append.first_veu
        if 0 <= lane < append.veus:
            found += (append.tasks - lane + append.veus - 1) // append.veus
    return found


def _begins(program: Program) -> list[int]:
    """Where each vEU's records begin."""
    counts = [_records(veu, program.appends) for veu in range(program.veus)]
    return [sum(counts[:veu]) for veu in range(program.veus)]


def _persistent(program: Program, step: Ran) -> Iterator[Sequence[Range]]:
    """Each vEU its list."""
    begins, appends = _begins(program), program.appends
    starts = [b + _records(v, appends[: step.first]) for v, b in enumerate(begins)]
    sizes = [_records(v, appends[step.first : step.last]) for v in range(program.veus)]
    yield [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _per_wave(program: Program, step: Ran) -> Iterator[Sequence[Range]]:
    """A run a wave: the appends of a vEU are listed wave by wave."""
    (ranges,) = _persistent(program, step)
    appends = program.appends[step.first : step.last]
    ends = [first for first, _ in ranges]
    for wave in sorted({a.wave for a in appends}):
        of_wave = [a for a in appends if a.wave == wave]
        starts = ends
        ends = [e + _records(v, of_wave) for v, e in enumerate(starts)]
        yield list(zip(starts, ends, strict=True))


def _serial(program: Program, step: Ran) -> Iterator[Sequence[Range]]:
    """All on the first vEU."""
    first = sum(a.tasks for a in program.appends[: step.first])
    last = first + sum(a.tasks for a in program.appends[step.first : step.last])
    yield [(first, last), *[(0, 0)] * (program.veus - 1)]


def _per_op(program: Program, step: Ran) -> Iterator[Sequence[Range]]:
    """A run an append, its rTasks in order, cut into as many pieces as it has vEUs."""
    first = sum(a.tasks for a in program.appends[: step.first])
    for append in program.appends[step.first : step.last]:
        cut = [first + append.tasks * v // append.veus for v in range(append.veus + 1)]
        pieces = list(itertools.pairwise(cut))
        yield [*pieces, *[(0, 0)] * (program.veus - len(pieces))]
        first += append.tasks
