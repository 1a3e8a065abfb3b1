"""Where carried values lie: mailboxes in global memory, and a stage in the vEU's shared memory.

A source's rTask leaves its part of a result in the stage; the walker stores it from there, element by
element, with the number of the run, in the mailbox of that result, and as it is where the result lies. Before
an rTask the walker gathers its carried operands from their mailboxes into the stage, where it reads them.
Operands and results have stages of their own: of two rTasks in turn, one is published while the next gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from irkit.schedule.tables import HEADER, SHARED, Program, Table

ELEMENT_BYTES, WORD_BYTES = 4, 8
GATHER_WORDS, PUBLISH_WORDS = 3, 8


@dataclass(frozen=True)
class Stage:
    """What of a walker carries values: the most operands that an rTask gathers, the most results that it
    publishes, and the bytes of shared memory that these take."""

    gathers: int = 0
    publishes: int = 0
    operand_bytes: int = 0
    result_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """All of it."""
        return self.operand_bytes + self.result_bytes

    @property
    def words(self) -> int:
        """Words of a record that say what is gathered and published; none where nothing is."""
        if not self.gathers:
            return 0
        return 2 + GATHER_WORDS * self.gathers + PUBLISH_WORDS * self.publishes

    @staticmethod
    def of(gathered: Iterable[tuple[int, int]], published: Iterable[tuple[int, int]]) -> Stage:
        """From (append, elements) of all that is gathered, and published."""
        (gathers, operands), (publishes, results) = _most(gathered), _most(published)
        return Stage(gathers, publishes, operands, results)

    @staticmethod
    def for_all(stages: Sequence[Stage]) -> Stage:
        """One in which each of several has room."""
        fields = (
            [getattr(stage, name) for stage in stages]
            for name in ("gathers", "publishes", "operand_bytes", "result_bytes")
        )
        return Stage(*(max(values, default=0) for values in fields))


NO_STAGE = Stage()


def staged(elements: int) -> int:
    """Bytes of a stage: read 16 at a time."""
    return -(-elements * ELEMENT_BYTES // 16) * 16


def _most(found: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The most that one append has: how many, and their bytes."""
    counts: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for append, elements in found:
        counts[append] = counts.get(append, 0) + 1
        sizes[append] = sizes.get(append, 0) + staged(elements)
    return max(counts.values(), default=0), max(sizes.values(), default=0)


def stage_of(program: Program) -> Stage:
    """What the walker of a program with all its plans carries."""
    return Stage.for_all([_stage(plan) for plan in program.plans])


def _stage(plan: Program) -> Stage:
    published = plan.mail.published
    return Stage.of(
        [(c.append, published[c.source].elements) for c in plan.mail.carried],
        [(p.append, p.elements) for p in published],
    )


def mail_bytes(program: Program) -> int:
    """Bytes of all mailboxes of a plan."""
    return WORD_BYTES * sum(p.elements for p in program.mail.published)


def with_mail(
    program: Program, records: Table, max_waits: int, stage: Stage, places: tuple[int, int, int]
) -> Table:
    """Padded `records` of a plan that say what is carried: each row gathers and publishes what its append
    does. `places`: the word where that begins, the byte of shared memory where the stage begins, and how far
    behind the counters the mailboxes do."""
    words_at, stage_at, mail_at = places
    result = records.copy()
    published = program.mail.published
    boxes = [mail_at]
    for one in published:
        boxes.append(boxes[-1] + WORD_BYTES * one.elements)

    def place(row: Table, operand: int, at: int) -> None:
        word = HEADER + 2 * max_waits + 3 * operand
        row[word : word + 3] = SHARED, at, 0

    def gather(row: Table, number: int, at: int) -> int:
        carried = program.mail.carried[number]
        elements = published[carried.source].elements
        first = words_at + 2 + GATHER_WORDS * int(row[words_at])
        row[first : first + GATHER_WORDS] = boxes[carried.source], elements, at
        row[words_at] += 1
        place(row, carried.operand, at)
        return at + staged(elements)

    def publish(row: Table, number: int, at: int) -> int:
        one = published[number]
        operand = program.appends[one.append].operands[one.operand]
        first = words_at + 2 + GATHER_WORDS * stage.gathers
        first += PUBLISH_WORDS * int(row[words_at + 1])
        piece = program.mail.pieces[one.pieces][int(row[1])]
        row[first : first + PUBLISH_WORDS] = (
            boxes[number],
            at,
            operand.base,
            operand.offset,
            *piece,
        )
        row[words_at + 1] += 1
        place(row, one.operand, at)
        return at + staged(one.elements)

    _each(result, [c.append for c in program.mail.carried], stage_at, gather)
    _each(result, [p.append for p in published], stage_at + stage.operand_bytes, publish)
    return result


def _each(
    records: Table, appends: Sequence[int], start: int, put: Callable[[Table, int, int], int]
) -> None:
    """Call `put` of each thing of each record's append, with the place where the last one ended."""
    numbers: dict[int, list[int]] = {}
    for number, append in enumerate(appends):
        numbers.setdefault(append, []).append(number)
    for row in records:
        at = start
        for number in numbers.get(int(row[5]), ()):
            at = put(row, number, at)
