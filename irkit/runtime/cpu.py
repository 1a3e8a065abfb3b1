"""Run an emitted module on a CPU: vEUs are threads, one row goes straight through."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.loading import LoadedModule
from irkit.schedule.tables import FIRST_INPUT, Program, ProgramTables, Table, build_tables
from irkit.weights import Array

MODES = ("serial", "per-op", "per-wave", "persistent")
_ALIGN = 256
# Calls of each mode that `auto` times, per size of batch, before it settles.
_TRIALS = 2


class _Threads:
    """The threads that are vEUs, one pool for all programs of the process.

    `together` is held while a program's vEUs wait for one another: they must all have a thread, so
    two such programs at once could starve each other. What runs without it waits for nothing.
    """

    def __init__(self) -> None:
        self.together = threading.Lock()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._count = 0

    def pool(self, count: int) -> ThreadPoolExecutor:
        """A pool of at least `count` threads; they start as they are needed."""
        with self._lock:
            if self._pool is None or self._count < count:
                self._count = max(count, os.cpu_count() or 1)
                # A smaller pool before it ends when its last user lets go of it.
                self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="irkit-veu")
            return self._pool


_threads = [_Threads()]


def _after_fork() -> None:
    """A forked child has none of the parent's threads, and whoever held its locks is gone."""
    _threads[0] = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def aligned(nbytes: int) -> Array:
    """Uninitialised bytes that start on a cache line. Raises DeviceError if there is no such memory."""
    try:
        raw = np.empty(nbytes + _ALIGN, dtype=np.uint8)
    except (MemoryError, ValueError):
        raise DeviceError(f"no memory for {nbytes} bytes of intermediate values") from None
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + nbytes]


class Workspace:
    """What one call in flight needs for itself: arena, counters, addresses."""

    def __init__(self, program: Program, tables: ProgramTables, constants: int) -> None:
        self.program = program
        ports = len(program.inputs) + len(program.outputs)
        self.bases = np.zeros(FIRST_INPUT + ports, dtype=np.int64)
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
        self.bases[:FIRST_INPUT] = (self.arena.ctypes.data, self.row_arena.ctypes.data, constants)

    def reserve(self, rows_padded: int) -> None:
        """Make room for a batch; never shrinks, so that a warm call allocates nothing."""
        if rows_padded > self.rows_capacity:
            self.row_arena = aligned(self.program.row_bytes * rows_padded)
            self.rows_capacity = rows_padded
            self.bases[1] = self.row_arena.ctypes.data


class Auto:
    """Measures the modes on real calls, per power of two of the batch, and keeps the fastest.

    A choice is looked at again after eight times as many calls: the machine may have been busy.
    """

    def __init__(self, modes: Sequence[str]) -> None:
        self.modes = tuple(modes)
        self.times: dict[int, dict[str, list[float]]] = {}
        self.chosen: dict[int, str] = {}
        self._calls: dict[int, int] = {}
        self._review: dict[int, int] = {}

    def pick(self, rows: int) -> tuple[str, bool]:
        """(mode for this call, whether to report its time)"""
        size = rows.bit_length()
        calls = self._calls[size] = self._calls.get(size, 0) + 1
        chosen = self.chosen.get(size)
        if chosen is not None and (len(self.modes) == 1 or calls < self._review[size]):
            return chosen, False
        if chosen is not None and self.chosen.pop(size, None) is not None:
            self.times[size] = {m: [] for m in self.modes}
        tried = self.times.setdefault(size, {m: [] for m in self.modes})
        return min(self.modes, key=lambda m: len(tried[m])), True

    def report(self, rows: int, mode: str, seconds: float) -> None:
        """Record a timed call; settles when every mode has been tried often enough."""
        size = rows.bit_length()
        tried = self.times[size]
        tried[mode].append(seconds)
        if all(len(t) > _TRIALS for t in tried.values()):
            self._review[size] = 8 * self._calls[size]
            # The first call of a mode pays for cold caches.
            self.chosen[size] = min(self.modes, key=lambda m: min(tried[m][1:]))


def _with_addresses(records: Table, addresses: Table) -> Table:
    """`records` with each rKernel's number replaced by its address."""
    found = records.copy()
    found[:, 0] = addresses[records[:, 0]]
    return found


class CpuExecutor:
    """Runs one program. Thread-safe: each call in flight has a workspace of its own."""

    def __init__(self, module: LoadedModule, weights: dict[str, Array], mode: str = "auto") -> None:
        self._module, self.program = module, module.program
        self.tables = build_tables(self.program)
        # Walkers call rKernels by their addresses in this process.
        addresses = np.array(module.rkernels, dtype=np.int64)
        self._records, self._serial_records, self._one_row = (
            _with_addresses(t, addresses)
            for t in (self.tables.records, self.tables.serial, self.tables.one_row)
        )
        self._run, self._call = module.run, module.call
        self._constants = aligned(self.program.constant_bytes)
        for name, at, size in self.program.constants:
            self._constants[at : at + size] = weights[name].reshape(-1).view(np.uint8)
        self.mode = mode
        parallel = self.program.veus > 1
        self.auto = Auto(("serial", "per-wave", "persistent") if parallel else ("serial",))
        self._free: list[Workspace] = []
        self._unwaited = self._records.copy()
        self._unwaited[:, 3], self._unwaited[:, 4] = -1, 0

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], rows: int) -> None:
        """Fill `outputs`. All arrays are C-contiguous, of the ports' dtypes and shapes."""
        try:
            space = self._free.pop()
        except IndexError:
            space = Workspace(self.program, self.tables, self._constants.ctypes.data)
        padded = -(-rows // 16) * 16
        if padded > space.rows_capacity:
            space.reserve(padded)
        if self.mode != "auto":
            self._run_mode(self.mode, space, inputs, outputs, rows, padded)
        elif rows == 1 and self.program.dynamic:
            self._serial(space, inputs, outputs, rows, padded)
        else:
            self._measured(space, inputs, outputs, rows, padded)
        self._free.append(space)

    def run_row(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """One row of a row-wise program, straight through on this thread."""
        try:
            space = self._free.pop()
        except IndexError:
            space = Workspace(self.program, self.tables, self._constants.ctypes.data)
        if space.rows_capacity < 16:
            space.reserve(16)
        address = space.addresses[0]
        self._call(self._one_row, space.bases, space.counters, address, 1, 16, *inputs, *outputs)
        self._free.append(space)

    def _measured(
        self,
        space: Workspace,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        rows: int,
        padded: int,
    ) -> None:
        mode, timed = self.auto.pick(rows)
        start = time.perf_counter()
        self._run_mode(mode, space, inputs, outputs, rows, padded)
        if timed:
            self.auto.report(rows, mode, time.perf_counter() - start)

    def _run_mode(
        self,
        mode: str,
        space: Workspace,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        rows: int,
        padded: int,
    ) -> None:
        if mode == "serial":
            self._serial(space, inputs, outputs, rows, padded)
            return
        for number, array in enumerate((*inputs, *outputs)):
            space.bases[FIRST_INPUT + number] = array.__array_interface__["data"][0]
        if mode == "persistent":
            self._persistent(space, rows, padded)
        elif mode == "per-wave":
            self._per_wave(space, rows, padded)
        else:
            self._per_op(space, rows, padded)

    def _serial(
        self,
        space: Workspace,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        rows: int,
        padded: int,
    ) -> None:
        self._call(
            self._serial_records,
            space.bases,
            space.counters,
            space.addresses[0],
            rows,
            padded,
            *inputs,
            *outputs,
        )

    def _ranges(
        self, space: Workspace, ranges: Any, records: Any, epoch: int, rows: int, padded: int
    ) -> None:
        """Walk one range of records per vEU: vEU 0 on this thread, the others on the pool."""
        busy = [v for v, (begin, end) in enumerate(ranges) if begin < end]
        arguments = (space.counters, epoch, rows, padded)
        futures: list[Future[int]] = []
        if len(busy) > 1:
            pool = _threads[0].pool(len(busy) - 1)
            futures = [
                pool.submit(
                    self._run, records, *ranges[v], space.bases, *arguments, space.addresses[v]
                )
                for v in busy[1:]
            ]
        try:
            done = sum(
                self._run(records, *ranges[v], space.bases, *arguments, space.addresses[v])
                for v in busy[:1]
            )
        finally:
            # The threads write into the caller's arrays: never leave before they have ended.
            wait(futures)
        done += sum(f.result() for f in futures)
        if done != sum(end - begin for begin, end in ranges):
            raise DeviceError("a vEU gave up waiting: the program did not finish")

    def _persistent(self, space: Workspace, rows: int, padded: int) -> None:
        space.epoch += 1
        begin = self.tables.begin.tolist()
        ranges = list(itertools.pairwise(begin))
        with _threads[0].together:
            self._ranges(space, ranges, self._records, space.epoch, rows, padded)

    def _per_wave(self, space: Workspace, rows: int, padded: int) -> None:
        # Waits are satisfied by the joins between waves, so counters need not be looked at.
        waves = self.tables.wave_begin.tolist()
        for begin, end in itertools.pairwise(waves):
            self._ranges(space, list(zip(begin, end, strict=True)), self._unwaited, 0, rows, padded)

    def _per_op(self, space: Workspace, rows: int, padded: int) -> None:
        first = 0
        for append in self.program.appends:
            cut = [first + append.tasks * v // append.veus for v in range(append.veus + 1)]
            ranges = list(itertools.pairwise(cut))
            ranges += [(0, 0)] * (self.program.veus - len(ranges))
            self._ranges(space, ranges, self._serial_records, 0, rows, padded)
            first += append.tasks

    def decisions(self) -> dict[str, Any]:
        """What `auto` has measured and chosen, by size of batch."""
        return {
            f"rows < {1 << size}": {
                "mode": mode,
                "microseconds": {
                    m: round(min(t) * 1e6, 1) for m, t in self.auto.times[size].items() if t
                },
            }
            for size, mode in sorted(self.auto.chosen.items())
        }
