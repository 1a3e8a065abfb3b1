"""Runs of a plan that is one launch: in mode `per-op` the kernel is queued as it is, with no graph around it.

A kernel finds its operands by a table of bases on the device. There is one for each set of addresses that
came, so that calls whose results lie now here, now there copy no table. A graph names the one table that it
was recorded with, and runs for one number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irkit.runtime.cuda.driver import Kernel
from irkit.runtime.cuda.facts import LaunchFacts
from irkit.runtime.cuda.memory import DeviceBuffer, Pool
from irkit.runtime.cuda.residence import Residence
from irkit.schedule.tables import Program, Table

_TABLES = 256
"""Sets of addresses that are kept; when there are more, all are made anew."""
_ROWS = 256
"""Numbers of rows whose blocks are kept."""


def is_single(plan: Program, facts: LaunchFacts) -> bool:
    """Whether a plan is one launch, of an rKernel, and keeps nothing per row."""
    return len(plan.appends) == 1 and not (plan.steps or plan.row_bytes or facts.calls)


class SingleLaunch:
    """The one launch of a plan; used under its executor's lock, every stream after the one before."""

    def __init__(self, pool: Pool, home: Residence, kernels: Sequence[Kernel]) -> None:
        (self._append,) = home.program.appends
        self._pool, self._home, self._kernel = pool, home, kernels[self._append.kernel]
        # With the words that were copied: a graph that somebody records around a call copies them again.
        self._tables: dict[tuple[int, ...], tuple[int, DeviceBuffer, Table]] = {}
        self._blocks: dict[int, int] = {}

    def launch(
        self,
        addresses: Sequence[int],
        rows: int,
        stream: Any,
        blocks_of: Callable[[int, int, int], int],
    ) -> None:
        """Queue a run of so many rows on inputs, outputs and state at these addresses; `blocks_of` says of a
        kernel, rTasks and rows by how many blocks they are run."""
        key = tuple(addresses)
        table = self._tables.get(key) or self._new_table(key, stream)
        blocks = self._blocks.get(rows) or self._new_blocks(rows, blocks_of)
        arguments = (self._home.serial, table[0], rows, -(-rows // 16) * 16)
        self._kernel.launch(blocks, arguments, stream)

    def _new_table(
        self, addresses: tuple[int, ...], stream: Any
    ) -> tuple[int, DeviceBuffer, Table]:
        if len(self._tables) >= _TABLES:
            self._tables.clear()
        bases = self._home.bases_of(addresses)
        table = self._pool.take(bases.nbytes)
        table.upload(bases, stream)
        self._tables[addresses] = found = table.address, table, bases
        return found

    def _new_blocks(self, rows: int, blocks_of: Callable[[int, int, int], int]) -> int:
        if len(self._blocks) >= _ROWS:
            self._blocks.clear()
        found = blocks_of(self._append.kernel, self._append.tasks, rows)
        self._blocks[rows] = found
        return found
