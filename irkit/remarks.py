"""What a run of passes says about itself: which rule applied where, which did not and why, how often.

Nothing is kept unless someone records: `with recording(Record(...)): ...`. A rule reports through `missed`
and `applied`, which cost a look at one variable otherwise. Records belong to a run, and to its thread.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

Kind = Literal["applied", "missed"]
KINDS: tuple[Kind, ...] = ("applied", "missed")


@dataclass(frozen=True)
class Remark:
    """One thing said about an op by a rule of a pass. `text` is the reason, or what was done."""

    kind: Kind
    pass_name: str
    rule: str
    op: str
    location: Attribute
    text: str


@dataclass
class Counts:
    """How often a rule met an op that it is for, and what came of it."""

    applied: int = 0
    missed: int = 0

    @property
    def matched(self) -> int:
        """Ops of the kind that the rule is for, each as often as it was looked at."""
        return self.applied + self.missed


class Record:
    """The remarks of one run, those of the kinds in `kinds`, and counts per pass and rule.

    A walk visits an op more than once: equal remarks are one, with the number of times it was made.
    """

    def __init__(self, kinds: frozenset[Kind] = frozenset(KINDS)) -> None:
        self.kinds = kinds
        self.remarks: dict[Remark, int] = {}
        self.counts: dict[tuple[str, str], Counts] = {}
        self.pass_name = ""

    def note(self, kind: Kind, op: Operation, rule: str, text: str) -> None:
        """Keep a remark about `op`."""
        counts = self.counts.setdefault((self.pass_name, rule), Counts())
        if kind == "applied":
            counts.applied += 1
        else:
            counts.missed += 1
        if kind in self.kinds:
            remark = Remark(kind, self.pass_name, rule, op.name, op.location, text)
            self.remarks[remark] = self.remarks.get(remark, 0) + 1


_current: ContextVar[Record | None] = ContextVar("irkit-remarks", default=None)


@contextmanager
def recording(record: Record) -> Generator[None]:
    """Collect into `record` what rules report inside, in this thread."""
    token = _current.set(record)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Record | None:
    """Where remarks go now, if anywhere."""
    return _current.get()


def missed(op: Operation, rule: str, reason: str, *values: object) -> None:
    """`rule` leaves `op` as it is; `reason` is a format string for `values`, made only if it is kept."""
    record = current()
    if record is not None:
        record.note("missed", op, rule, reason.format(*values) if values else reason)


def applied(op: Operation, rule: str, text: str = "", *values: object) -> None:
    """`rule` has rewritten `op`, or decided about it."""
    record = current()
    if record is not None:
        record.note("applied", op, rule, text.format(*values) if values else text)
