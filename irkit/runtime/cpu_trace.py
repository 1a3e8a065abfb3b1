"""Run a CPU program with a clock around every wait and every rTask.

The walker here is the one of emitted modules (`lower/task_to_numba/targets.py`) plus three time stamps
an rTask; it is compiled when a trace is first asked for, so that programs as such carry none of it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportCallIssue=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from irkit.errors import UnsupportedError
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.intrinsics.cpu import add_release, call_rkernel, wait_for
from irkit.runtime.mode_choice import ModeChoice
from irkit.schedule.modes import Mode
from irkit.schedule.tables import FIRST_INPUT, HEADER
from irkit.weights import Array

_MONOTONIC = 1
_I64 = ir.IntType(64)


@intrinsic
def clock_ns(typingctx: Any) -> Any:
    """Nanoseconds of the monotonic clock (POSIX clock_gettime)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), _I64.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        pair = cgutils.alloca_once(builder, _I64, size=2)
        builder.call(function, [ir.IntType(32)(_MONOTONIC), pair])
        seconds = builder.load(pair)
        rest = builder.load(builder.gep(pair, [_I64(1)]))
        return builder.add(builder.mul(seconds, _I64(1_000_000_000)), rest)

    return types.int64(), codegen


@njit(nogil=True, error_model="numpy")
def run_traced(
    records, begin, end, bases, counters, epoch, rows, rows_padded, address, operands_at, stamps
):
    """As `run` of an emitted module; `stamps[i]` becomes (arrived, start, end) of record i."""
    for i in range(begin, end):
        stamps[i, 0] = clock_ns()
        for w in range(records[i, 4]):
            counter = counters.ctypes.data + 8 * records[i, HEADER + 2 * w]
            if not wait_for(counter, epoch * records[i, HEADER + 1 + 2 * w], 100_000_000):
                return i - begin
        stamps[i, 1] = clock_ns()
        for o in range((records.shape[1] - operands_at) // 3):
            at = operands_at + 3 * o
            address[o] = (
                bases[records[i, at]] + records[i, at + 1] + records[i, at + 2] * rows_padded
            )
        call_rkernel(
            records[i, 0],
            records[i, 1],
            records[i, 2],
            rows,
            address[address.size - 1],
            address.ctypes.data,
        )
        stamps[i, 2] = clock_ns()
        if records[i, 3] >= 0:
            add_release(counters.ctypes.data + 8 * records[i, 3], 1)
    return end - begin


class TracedExecutor(CpuExecutor):
    """An executor whose calls leave `rows`: append, rTask, vEU, arrived, start, end (ns) per rTask.

    Where there are plans for ranges of rows, `last` is the executor of the plan that ran last.
    """

    # Its walker is a Python function around a compiled one.
    _of_a_team = False

    def __init__(self, plain: CpuExecutor, mode: str) -> None:
        traced = (Mode.SERIAL, Mode.PER_WAVE, Mode.PERSISTENT)
        if mode not in traced:
            raise UnsupportedError(
                f"a trace in mode '{mode}': expected serial, per-wave or persistent"
            )
        if plain.program.steps:
            raise UnsupportedError("a trace of a program with loops")
        self.__dict__.update(plain.__dict__)
        self._plain, self._wanted = plain, mode
        self._last: TracedExecutor | None = None
        self.choice, self._idle = ModeChoice("cpu", mode, traced, plain.choice.refused), []
        self._straight = self.plain_row = False
        # What is traced is no run of the program: its state stays as it is.
        self.state = plain.state.copy() if plain.state is not None else None
        records = self._serial_records if mode == Mode.SERIAL else self._records
        self._stamps = np.zeros((len(records), 3), dtype=np.int64)
        self._run = self._traced

    def plan_of(self, rows: int) -> TracedExecutor:
        """The executor of the plan for so many rows, which leaves a trace too."""
        plain = self._plain.plan_of(rows)
        if plain is self._plain:
            self._last = None
        elif self.last._plain is not plain:
            self._last = TracedExecutor(plain, self._wanted)
        return self.last

    @property
    def last(self) -> TracedExecutor:
        """What ran the last call."""
        return self._last or self

    def _traced(self, records: Array, begin: int, end: int, *arguments: Any) -> int:
        operands_at = HEADER + 2 * self.tables.max_waits
        return run_traced(records, begin, end, *arguments, operands_at, self._stamps)

    def _serial(
        self, space: Any, arrays: Sequence[Array], rows: int, padded: int, part: Any
    ) -> None:
        for number, array in enumerate(arrays):
            space.bases[FIRST_INPUT + number] = array.__array_interface__["data"][0]
        records = self._serial_records
        arguments = (space.bases, space.counters, 1, rows, padded, space.addresses[0])
        self._traced(records, 0, len(records), *arguments)

    def rows(self) -> Array:
        """The last call, one row per rTask."""
        if self._last is not None:
            return self._last.rows()
        records = self._serial_records if self.mode == Mode.SERIAL else self._records
        veus = np.zeros(len(records), dtype=np.int64)
        if self.mode != Mode.SERIAL:
            counts = np.diff(self.tables.begin)
            veus = np.repeat(np.arange(len(counts)), counts)
        return np.column_stack([records[:, 5], records[:, 1], veus, self._stamps]).astype(
            np.float64
        )
