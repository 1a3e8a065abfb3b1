"""A program's tables, constants and arenas on the device."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from irkit.runtime.cuda.driver import call
from irkit.runtime.cuda.facts import LaunchFacts
from irkit.runtime.cuda.memory import DeviceBuffer, Pool
from irkit.runtime.cuda.tensor_maps import put, room
from irkit.schedule.mail import Stage, mail_bytes, with_mail
from irkit.schedule.tables import FIRST_INPUT, Program, ProgramTables, Table
from irkit.weights import Array

# As printed in the walkers (irkit.lower.task_to_numba.walkers_cuda).
COUNTER_BYTES = 32


def padded_records(records: Table, words: int) -> Table:
    """Records of `words` words, zeros at the end."""
    result = np.zeros((len(records), words), dtype=np.int64)
    result[:, : records.shape[1]] = records
    return result


def unpinned_records(program: Program, tables: ProgramTables) -> Table:
    """The records in the order of `tables.records`, none of whose operands is in shared memory."""
    tasks = np.array([a.tasks for a in program.appends], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(tasks)[:-1]]).astype(np.int64)
    return tables.serial[first[tables.records[:, 5]] + tables.records[:, 1]]


def load_constants(
    pool: Pool, program: Program, weights: dict[str, Array], stream: Any
) -> DeviceBuffer:
    """The constants of a program, and of all its plans, on the device."""
    blob = np.zeros(max(program.constant_bytes, 1), dtype=np.uint8)
    for name, at, size in program.constants:
        blob[at : at + size] = np.ascontiguousarray(weights[name]).reshape(-1).view(np.uint8)
    buffer = pool.take(blob.nbytes)
    buffer.upload(blob, stream)
    call("cuStreamSynchronize", stream)
    return buffer


class Residence:
    """Everything of a program, or of one of its plans, that stays on the device between runs."""

    def __init__(
        self,
        pool: Pool,
        program: Program,
        tables: ProgramTables,
        facts: LaunchFacts,
        constants: DeviceBuffer,
        stream: Any,
    ) -> None:
        self._pool, self._stream = pool, stream
        self.program = program
        words = facts.record_words
        self._kept = [constants]
        self.record_bytes = 8 * words
        records = padded_records(tables.records, words)
        if facts.stage:
            words_at, stage_at, *sizes = facts.stage
            stage, places = Stage(*sizes), (words_at, stage_at, self._mail_at)
            records = with_mail(program, records, tables.max_waits, stage, places)
        self.records = self._upload(records)
        self.unpinned = self._upload(padded_records(unpinned_records(program, tables), words))
        self.serial = self._upload(padded_records(tables.serial, words))
        self.begin = self._upload(tables.begin)
        self.wave_begin = self._upload(tables.wave_begin)
        self.residents = self._upload(tables.residents)
        veus = np.arange(program.veus + 1)
        begins = np.searchsorted(tables.residents[:, 0], veus)
        # Of each vEU, the first row, and before which record they are copied.
        both = np.stack([begins, np.append(tables.resident_from, -1)], axis=1)
        self.resident_begin = self._upload(both)
        counters = pool.take(self._counter_bytes)
        counters.clear(stream)
        self._counters = counters
        self.counters = counters.address
        self.arena = pool.take(program.arena_bytes)
        self.row_arena = pool.take(0)
        self.rows_capacity = 0
        self.epoch = 0
        # Behind the ports are bases that move: kernels put them where they lie.
        self._ports = slice(FIRST_INPUT, FIRST_INPUT + len(program.ports))
        # Where others of its plans have tensor maps, the walker reads one more.
        self._bases = np.zeros(room(program.bases, program.maps) + 1, dtype=np.int64)
        spaces = self.arena, self.row_arena, constants
        self._bases[: len(spaces)] = [buffer.address for buffer in spaces]
        self._on_device = np.full_like(self._bases, -1)
        self._bound: list[int] = []
        buffer = pool.take(self._bases.nbytes)
        self._kept.append(buffer)
        self._base_buffer, self.bases = buffer, buffer.address

    @property
    def _counter_bytes(self) -> int:
        """Those of appends, the one where the blocks of a program with loops meet, and mailboxes."""
        return self._mail_at + mail_bytes(self.program)

    @property
    def _mail_at(self) -> int:
        return COUNTER_BYTES * (len(self.program.appends) + 1)

    @property
    def meeting(self) -> int:
        """Address of the counter where blocks meet."""
        return self.counters + COUNTER_BYTES * len(self.program.appends)

    def beside(self, rows_padded: int, stream: Any) -> Residence:
        """The same tables and constants with an arena and counters of its own, for a run that may be under
        way at the same time as this one's."""
        made = copy(self)
        made.rows_capacity, made.epoch = rows_padded, 0
        made.arena = self._pool.take(self.program.arena_bytes)
        made.row_arena = self._pool.take(self.program.row_bytes * rows_padded)
        counters = self._pool.take(self._counter_bytes)
        counters.clear(stream)
        made.counters = counters.address
        made._counters = counters
        made._bases = self._bases.copy()
        made._bound = []
        made._bases[:2] = made.arena.address, made.row_arena.address
        return made

    def bound(self, addresses: list[int], stream: Any) -> Residence:
        """The same, seeing these inputs and outputs from now on: what it works in is this one's."""
        made = copy(self)
        made._bases, made._on_device = self._bases.copy(), np.full_like(self._bases, -1)
        made._bound = []
        made._base_buffer = self._pool.take(self._bases.nbytes)
        made.bases = made._base_buffer.address
        made.bind(addresses, self.rows_capacity, stream)
        return made

    @property
    def own(self) -> list[tuple[int, int]]:
        """Address and bytes of what a run changes beside its arguments."""
        buffers = self._counters, self.arena, self.row_arena
        return [(buffer.address, buffer.size) for buffer in buffers]

    def restart(self, stream: Any) -> None:
        """Let the next run be the first, in stream order: as it was recorded, it may be run again."""
        self._counters.clear(stream)
        self.epoch = 0

    def _upload(self, table: Any) -> int:
        host = np.ascontiguousarray(table, dtype=np.int64)
        buffer = self._pool.take(host.nbytes)
        if host.size:
            buffer.upload(host, self._stream)
        self._kept.append(buffer)
        return buffer.address

    @property
    def table_bytes(self) -> int:
        """Of a table of bases, and of the tensor maps behind it."""
        return self._bases.nbytes

    def bases_of(self, addresses: Sequence[int], at: int) -> Table:
        """The table of a run on these inputs, outputs and state that keeps nothing per row, to lie `at` an
        address."""
        bases = self._bases.copy()
        bases[self._ports] = addresses
        self._put_maps(bases, at)
        return bases

    def _put_maps(self, bases: Table, at: int) -> None:
        if self.program.maps:
            put(bases, self.program.bases, self.program.maps, at)

    @property
    def host_bases(self) -> list[int]:
        """The addresses of all bases, as they were bound last."""
        return self._bases.tolist()

    def bind(self, addresses: list[int], rows_padded: int, stream: Any) -> None:
        """Make the program see these inputs, outputs and state, and room for this many rows."""
        if addresses == self._bound and rows_padded <= self.rows_capacity:
            return
        if rows_padded > self.rows_capacity:
            self.row_arena = self._pool.take(self.program.row_bytes * rows_padded)
            self.rows_capacity = rows_padded
            self._bases[1] = self.row_arena.address
        self._bases[self._ports] = addresses
        self._put_maps(self._bases, self.bases)
        if not np.array_equal(self._bases, self._on_device):
            self._base_buffer.upload(self._bases, stream)
            self._on_device[:] = self._bases
        self._bound = list(addresses)
