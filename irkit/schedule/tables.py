"""Build the tables that walkers read (docs/emission.md) from the readable PROGRAM of a module."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from irkit.errors import ArtifactError
from irkit.row_ranges import ALL_ROWS, Rows, why_not_all

Table = NDArray[np.int64]
HEADER = 6
ARENA, ROWS, CONSTANTS, FIRST_INPUT, SHARED = 0, 1, 2, 3, -1


class Operand(NamedTuple):
    """Where an operand lies: bases[base] + offset + per_row * rows_padded."""

    base: int
    offset: int
    per_row: int = 0


class Pinned(NamedTuple):
    """Read operand `operand` is in shared memory at `offset`; rTask t's bytes start `starts[t]` into
    the operand and are `sizes[t]` long."""

    operand: int
    offset: int
    starts: tuple[int, ...]
    sizes: tuple[int, ...]


class Appended(NamedTuple):
    """One line of the schedule."""

    kernel: int
    tasks: int
    first_veu: int
    veus: int
    wave: int
    waits: tuple[int, ...]
    operands: tuple[Operand, ...]
    pinned: tuple[Pinned, ...] = ()


class TensorMap(NamedTuple):
    """An operand at `base` and `offset` as a GPU's copy engine sees it, which copies boxes of it.

    `sizes` counts elements and `box` those of a box, the dimension that lies side by side first; `steps` are
    bytes from one to the next in every other. `element` is a NumPy name, or "tfloat32": float32, rounded so.
    """

    base: int
    offset: int
    element: str
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...]


MAP_BYTES = 128
"""What a tensor map takes on the device, at a multiple of half as many."""


class Published(NamedTuple):
    """Operand `operand`, a result, of append `append`, of `elements`, is stored in a mailbox too; `pieces`
    says which table of pieces has what each rTask writes of it."""

    append: int
    operand: int
    elements: int
    pieces: int


class Carried(NamedTuple):
    """Read operand `operand` of append `append` is gathered from the mailbox of published result `source`."""

    append: int
    operand: int
    source: int


class Mail(NamedTuple):
    """What is carried with its flag. A table of pieces has, for each rTask: first element, rows, elements of
    a row, distance of rows."""

    published: tuple[Published, ...] = ()
    carried: tuple[Carried, ...] = ()
    pieces: tuple[tuple[tuple[int, int, int, int], ...], ...] = ()


NO_MAIL = Mail()


class Moving(NamedTuple):
    """A base of its own: bases[base] + offset, and `steps` further on in each iteration of the loops around,
    the outermost first."""

    base: int
    offset: int
    steps: tuple[int, ...]


class Ran(NamedTuple):
    """Appends `first` to `last`, which is none of them; moving bases `moving[0]` to `moving[1]` are put where
    they lie in this iteration. When all have ended, the next step begins."""

    first: int
    last: int
    moving: tuple[int, int]


class Repeated(NamedTuple):
    """Steps that are run `trips` times; where that is an operand, as long as its byte, asked for before each
    turn, is not 0."""

    trips: int | Operand
    steps: tuple[Ran | Repeated, ...]


class Port(NamedTuple):
    """An input or output: NumPy dtype name, shape with -1 for the batch."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def shape_of(self, rows: int) -> tuple[int, ...]:
        """Its shape in a call with so many rows."""
        return tuple(rows if size == -1 else size for size in self.shape)


@dataclass(frozen=True)
class Program:
    """What an emitted module says of itself: everything but code.

    `shared_bytes` is what residents and scratch take of each vEU's own memory. `modes` are those that
    the proof covers, `verified` is the digest of the IR that was proved, and `tables` the digest of
    all the rest here, so that tables that are not those of the proof are known. `states` is what lasts from
    run to run, by the names of the inputs that it stands for; these are none of `inputs`.

    `rows` are the numbers of rows that the schedule here is for. A program that is planned for several ranges
    has the first of its plans here and the `others` beside it, in the order of their rows: programs of the
    same inputs, outputs, state, constants and kernels.

    `needed`: of each output, which appends it hangs on; nothing where each hangs on all.

    `maps`: tensor maps, which lie on the device behind the table of bases, whose last entry says where. An
    append of an rKernel that copies boxes has its own behind its operands.
    """

    device: str
    veus: int
    threads: int
    shared_bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    arena_bytes: int
    row_bytes: int
    constant_bytes: int
    constants: tuple[tuple[str, int, int], ...]
    kernels: tuple[str, ...]
    appends: tuple[Appended, ...]
    modes: tuple[str, ...]
    verified: str
    tables: str = ""
    states: tuple[Port, ...] = ()
    rows: Rows = ALL_ROWS
    others: tuple[Program, ...] = ()
    steps: tuple[Ran | Repeated, ...] = ()
    moving: tuple[Moving, ...] = ()
    mail: Mail = NO_MAIL
    needed: tuple[tuple[int, ...], ...] = ()
    maps: tuple[TensorMap, ...] = ()

    @property
    def plans(self) -> tuple[Program, ...]:
        """This program's plans, in the order of their rows."""
        return (self, *self.others)

    def plan(self, **facts: Any) -> Program:
        """What is of the same program, but has these facts: its plan for other rows."""
        return replace(self, **facts)

    def planned(self, plans: Sequence[Program]) -> Program:
        """The same with all its `plans`, of which it is the first.

        Raises ArtifactError where they are not for every number of rows.
        """
        reason = why_not_all([plan.rows for plan in plans])
        if reason is None and any(plan.verified != self.verified for plan in plans):
            reason = "they are of several proofs"
        if reason is not None:
            raise ArtifactError(f"the program's plans for ranges of rows: {reason}")
        return replace(self, others=tuple(plans[1:]))

    def sealed(self) -> Program:
        """The same with its digest in `tables`."""
        return replace(self, tables=self.digest())

    def digest(self) -> str:
        """Digest of everything but `tables`, and other plans, which have their own."""
        left_out = ["tables", "others"]
        # A program without state says nothing of it, nor one for any rows of these.
        left_out += [name for name, said in _SAID_IF.items() if not said(self)]
        given = (getattr(self, f.name) for f in fields(self) if f.name not in left_out)
        # Plain tuples of numbers and names: a named one prints its fields' names, which say nothing new.
        return hashlib.sha256(repr([_as_plain(value) for value in given]).encode()).hexdigest()

    @property
    def ports(self) -> tuple[Port, ...]:
        """Whose addresses follow those of the spaces in the table of bases."""
        return (*self.inputs, *self.outputs, *self.states)

    @property
    def dynamic(self) -> bool:
        """Whether the program takes a batch of any size."""
        return any(p.shape[:1] == (-1,) for p in self.inputs)

    @property
    def bases(self) -> int:
        """Entries of the table of bases: spaces, ports, what moves in loops, and where tensor maps are."""
        return FIRST_INPUT + len(self.ports) + len(self.moving) + bool(self.maps)

    def cuts_batch(self, append: Appended) -> bool:
        """Whether an append's rTasks are shares of the batch: then its results are row by row."""
        result = append.operands[-1]
        if self.maps and result.base == self.bases - 1:
            # A rKernel that copies boxes takes sizes that are known.
            return False
        if result.base < FIRST_INPUT:
            return result.base == ROWS
        # Behind the ports are moving bases: where there are any, no size is open.
        return not self.moving and self.ports[result.base - FIRST_INPUT].shape[:1] == (-1,)


_SAID_IF: dict[str, Callable[[Program], bool]] = {
    "states": lambda program: bool(program.states),
    "rows": lambda program: program.rows != ALL_ROWS,
    "steps": lambda program: bool(program.steps),
    "moving": lambda program: bool(program.steps),
    "mail": lambda program: bool(program.mail.carried),
    "needed": lambda program: bool(program.needed),
    "maps": lambda program: bool(program.maps),
}


@dataclass(frozen=True)
class ProgramTables:
    """The walkers' tables. `records` is rTasks×words, vEU by vEU; `begin` is veus+1; `wave_begin` is
    (waves+1)×veus; `residents` rows are (vEU, shared offset, base, source offset, bytes), sorted by vEU,
    `resident_from` of each vEU the record before which it copies its own, -1 where it has none;
    `serial` are all records in list order, without waits or signals, and `one_row` those of them that have
    work when the batch is 1: of n shares the last, n - 1, is rows [0, 1)."""

    records: Table
    begin: Table
    wave_begin: Table
    residents: Table
    resident_from: Table
    serial: Table
    one_row: Table
    max_waits: int
    max_operands: int

    @property
    def waves(self) -> int:
        """Number of waves."""
        return len(self.wave_begin) - 1


def _as_plain(value: Any) -> Any:
    return (
        tuple(map(_as_plain, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else value
    )


def record_sizes(plans: Sequence[Program]) -> tuple[int, int]:
    """The most waits and the most operands of an rTask: a record of the walker has room for them."""
    appends = [append for plan in plans for append in plan.appends]
    waits = max((len(a.waits) for a in appends), default=0)
    return waits, max((len(a.operands) for a in appends), default=0)


def build_tables(program: Program, plans: Sequence[Program] = ()) -> ProgramTables:
    """All tables of a program, or of one of the `plans` of a program, which have one walker.

    Raises ArtifactError if it is not what was emitted from the proof.
    """
    if program.tables != program.digest():
        raise ArtifactError(
            "the program's schedule is not the one that was proved: its table was changed after emission"
        )
    max_waits, max_operands = record_sizes(plans or program.plans)
    words = HEADER + 2 * max_waits + 3 * max_operands
    signalled = {w for a in program.appends for w in a.waits}
    lists: list[list[Table]] = [[] for _ in range(program.veus)]
    waves: list[list[int]] = [[] for _ in range(program.veus)]
    first_kept = dict[int, int]()
    serial: list[Table] = []
    one_row: list[Table] = []
    for number, append in enumerate(program.appends):
        counts = [(w, program.appends[w].tasks) for w in append.waits]
        template = _template(number, append, counts, number in signalled, words, max_waits)
        shares = program.cuts_batch(append)
        for task in range(append.tasks):
            record = template.copy()
            record[1] = task
            _pin(record, append, task, HEADER + 2 * max_waits)
            veu = append.first_veu + task % append.veus
            if append.pinned:
                first_kept.setdefault(veu, len(lists[veu]))
            lists[veu].append(record)
            waves[veu].append(append.wave)
            plain = template.copy()
            plain[1], plain[3], plain[4] = task, -1, 0
            serial.append(plain)
            if not shares or task == append.tasks - 1:
                one_row.append(plain)
    begin = np.cumsum([0, *(len(rows) for rows in lists)], dtype=np.int64)
    first_kept = {veu: begin[veu] + at for veu, at in first_kept.items()}
    return ProgramTables(
        _stacked([r for rows in lists for r in rows], words),
        begin,
        _wave_begin(waves, begin),
        _residents(program.appends),
        np.array([first_kept.get(v, -1) for v in range(program.veus)], dtype=np.int64),
        _stacked(serial, words),
        _stacked(one_row, words),
        max_waits,
        max_operands,
    )


def _stacked(rows: Sequence[Table], words: int) -> Table:
    return np.ascontiguousarray(rows, dtype=np.int64).reshape(len(rows), words)


def _template(
    number: int,
    append: Appended,
    counts: Sequence[tuple[int, int]],
    signals: bool,
    words: int,
    max_waits: int,
) -> Table:
    record = np.zeros(words, dtype=np.int64)
    record[:HEADER] = (
        append.kernel,
        0,
        append.tasks,
        number if signals else -1,
        len(counts),
        number,
    )
    for w, (counter, count) in enumerate(counts):
        record[HEADER + 2 * w : HEADER + 2 * w + 2] = (counter, count)
    at = HEADER + 2 * max_waits
    for operand in append.operands:
        record[at : at + 3] = operand
        at += 3
    return record


def _pin(record: Table, append: Appended, task: int, first: int) -> None:
    """Point pinned operands at shared memory, biased so that global indices still hold."""
    for pinned in append.pinned:
        at = first + 3 * pinned.operand
        record[at : at + 3] = (SHARED, pinned.offset - pinned.starts[task], 0)


def _wave_begin(waves: list[list[int]], begin: Table) -> Table:
    last = max((w for row in waves for w in row), default=-1)
    table = np.empty((last + 2, len(waves)), dtype=np.int64)
    for veu, row in enumerate(waves):
        table[:, veu] = begin[veu] + np.searchsorted(row, np.arange(last + 2))
    return table


def _residents(appends: Sequence[Appended]) -> Table:
    rows: dict[tuple[int, ...], None] = {}
    for append in appends:
        for pinned in append.pinned:
            operand = append.operands[pinned.operand]
            for task in range(append.tasks):
                veu = append.first_veu + task % append.veus
                source = operand.offset + pinned.starts[task]
                rows[(veu, pinned.offset, operand.base, source, pinned.sizes[task])] = None
    table: list[Any] = sorted(rows)
    return np.array(table, dtype=np.int64).reshape(-1, 5)
