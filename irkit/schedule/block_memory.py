"""Shared memory of a block: what the schedule plans, and above it the tables of the block's walker.

The walker keeps the addresses of the bases, of the operands of the rTask at hand, and two records, of
which one is fetched while the other runs (docs/emission.md). How large they are follows from the
program, so the proof knows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from irkit.schedule.carried import carried_stage
from irkit.schedule.mail import NO_STAGE, Stage
from irkit.schedule.model import Schedule
from irkit.schedule.tables import FIRST_INPUT, HEADER

WORD = 8
"""Bytes of a word of the walker's tables."""

ALIGNMENT = 16
"""Bytes: the walker's tables, residents and scratch are copied and read 16 bytes at a time."""

WALKER_ROOM = 7 * 1024
"""Bytes left for the walker's tables where scratch is judged, before it is known how large they are. A
program that needs more, as one whose appends wait for hundreds of others, the proof refuses if it does not
fit."""


def aligned(nbytes: int) -> int:
    """Rounded up to the alignment of shared memory."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class BlockMemory:
    """Where things lie in a block's shared memory.

    `bases` counts the entries of the base table (those of the spaces, inputs, outputs, state); `planned` is
    how many bytes the schedule uses, residents and scratch side by side, and `steps` how many words the table
    of the steps of a program with loops has. `stage` is what it carries.
    """

    bases: int
    max_waits: int
    max_operands: int
    planned: int = 0
    steps: int = 0
    stage: Stage = NO_STAGE

    @property
    def operands_at(self) -> int:
        """Word of a record where the operands start."""
        return HEADER + 2 * self.max_waits

    @property
    def record_words(self) -> int:
        """Words of a record: even, so that it is copied 16 bytes at a time."""
        words = self.mail_at + self.stage.words
        return words + words % 2

    @property
    def mail_at(self) -> int:
        """Word of a record where it says what is carried."""
        return self.operands_at + 3 * self.max_operands

    @property
    def address_words(self) -> int:
        """Words of the base table, one entry before it, and of the operands' addresses; even."""
        words = self.bases + 1 + self.max_operands
        return words + words % 2

    @property
    def tables(self) -> int:
        """Byte offset of the walker's tables."""
        return aligned(self.planned)

    @property
    def step_table(self) -> int:
        """Byte offset of the table of steps."""
        return self.tables + WORD * (self.address_words + 2 * self.record_words)

    @property
    def stage_at(self) -> int:
        """Byte offset of the stage of what is carried."""
        return aligned(self.step_table + WORD * self.steps)

    @property
    def nbytes(self) -> int:
        """All of it."""
        if not self.stage.nbytes:
            return self.step_table + WORD * self.steps
        return self.stage_at + self.stage.nbytes


def walker_bytes(*schedules: Schedule) -> int:
    """Bytes of shared memory that the walker of each vEU needs beside what is planned; 0 on a CPU. Several
    schedules of one function are walked by one walker."""
    if schedules[0].device.kind != "cuda":
        return 0
    spaces = ("input", "output", "state")
    ports = sum(b.space in spaces and b.parent is None for b in schedules[0].buffers)
    waits = (len(append.waits) for schedule in schedules for append in schedule.appends)
    launches = [launch for schedule in schedules for launch in schedule.launches]
    operands = (len(launch.reads) + len(launch.writes) + launch.maps for launch in launches)
    memory = BlockMemory(
        FIRST_INPUT + ports + any(launch.maps for launch in launches),
        max(waits, default=0),
        max(operands, default=0),
        stage=Stage.for_all([carried_stage(schedule) for schedule in schedules]),
    )
    return memory.nbytes
