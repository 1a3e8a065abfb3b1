"""The memory of one call of a CPU program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.intrinsics.cpu_team import JOB, JOB_WORDS
from irkit.schedule.tables import FIRST_INPUT, Program, ProgramTables
from irkit.weights import Array

_ALIGN = 256


def aligned(nbytes: int) -> Array:
    """Uninitialised bytes that start on a cache line. Raises DeviceError if there is no such memory."""
    try:
        raw = np.empty(nbytes + _ALIGN, dtype=np.uint8)
    except (MemoryError, ValueError):
        raise DeviceError(f"no memory for {nbytes} bytes of intermediate values") from None
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + nbytes]


class Jobs(NamedTuple):
    """A job of each vEU (`intrinsics/cpu_team.py`), one behind another: its words, their address, and a view
    by which one word is read and written in a tenth of the time."""

    words: Array
    address: int
    values: memoryview


class Workspace:
    """What one call in flight needs for itself: arena, counters, addresses."""

    def __init__(
        self, program: Program, tables: ProgramTables, constants: int, state: Sequence[int] = ()
    ) -> None:
        self.program = program
        ports = FIRST_INPUT + len(program.ports)
        self.bases = np.zeros(ports + len(program.moving), dtype=np.int64)
        # Behind inputs and outputs, which are bound anew for each call.
        self.bases[ports - len(state) : ports] = state
        self.arena = aligned(program.arena_bytes)
        self.rows_capacity = 0
        self.row_arena = aligned(0)
        self.counters = np.zeros(max(len(program.appends), 1), dtype=np.int64)
        # Per vEU: where its rTask's operands lie, and last its scratch.
        self.addresses = [
            np.zeros(tables.max_operands + 1, dtype=np.int64) for _ in range(program.veus)
        ]
        self.scratch = [aligned(program.shared_bytes) for _ in range(program.veus)]
        for address, scratch in zip(self.addresses, self.scratch, strict=True):
            address[-1] = scratch.ctypes.data
        self.epoch = 0
        # What a team of threads is told to run, by its table of records.
        self._jobs: dict[int, Jobs] = {}
        # What `cpu_steps` makes of it, by mode.
        self.step_jobs: dict[str, object] = {}
        # What `row_call` makes of it: a row that is rounded, and outputs that nobody wants.
        self.row_input: Array | None = None
        self.row_outputs: list[Array] | None = None
        self.bases[:FIRST_INPUT] = (self.arena.ctypes.data, self.row_arena.ctypes.data, constants)

    def reserve(self, rows_padded: int) -> None:
        """Make room for a batch; never shrinks, so that a warm call allocates nothing."""
        if rows_padded > self.rows_capacity:
            self.row_arena = aligned(self.program.row_bytes * rows_padded)
            self.rows_capacity = rows_padded
            self.bases[1] = self.row_arena.ctypes.data

    def jobs(self, records: Array, operands_at: int) -> Jobs:
        """A job of each vEU, with those words that are the same in each call.

        `operands_at`: where the operands begin in a record.
        """
        found = self._jobs.get(id(records))
        if found is None:
            words = np.zeros((len(self.addresses), JOB_WORDS), dtype=np.int64)
            for job, address in zip(words, self.addresses, strict=True):
                job[: len(JOB)] = [
                    *(records.ctypes.data, records.shape[1], operands_at, 0, 0),
                    *(self.bases.ctypes.data, self.counters.ctypes.data, 0, 0, 0),
                    *(address.ctypes.data, address.size - 1, 0, 0),
                ]
            found = self._jobs[id(records)] = Jobs(words, words.ctypes.data, words.reshape(-1).data)
        return found
