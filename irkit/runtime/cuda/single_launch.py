"""Runs of a plan that is one launch in mode `per-op`, each with a table of its own.

A kernel finds its operands by a table of bases on the device. There is one for each set of addresses that
came, so that calls whose results lie now here, now there copy no table. What comes again, with as many rows,
is launched by a graph of that one kernel: the driver has less to do for it than for the kernel itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from irkit.runtime.cuda.driver import Graph, Kernel, call
from irkit.runtime.cuda.facts import LaunchFacts
from irkit.runtime.cuda.memory import DeviceBuffer, Pool
from irkit.runtime.cuda.residence import Residence
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Program, Table

Recorded = tuple[Mode, int, tuple[int, ...]]
"""What a graph was recorded for: mode, rows, and addresses that it holds."""
_TABLES, _CALLS = 256, 64
"""Sets of addresses, and of these with a number of rows, that are kept; beyond, all are made anew."""


def is_single(plan: Program, facts: LaunchFacts) -> bool:
    """Whether a plan is one launch, of an rKernel, and keeps nothing per row."""
    return len(plan.appends) == 1 and not (plan.steps or plan.row_bytes or facts.calls)


class SingleLaunch:
    """The one launch of a plan; used under its executor's lock, every stream after the one before.

    `stream` is one on which graphs may be recorded.
    """

    def __init__(self, pool: Pool, home: Residence, kernels: Sequence[Kernel], stream: Any) -> None:
        (self._append,) = home.program.appends
        self._pool, self._home, self._kernel = pool, home, kernels[self._append.kernel]
        self._stream = stream
        self._met: set[Recorded] = set()
        # With the words that were copied: a graph that somebody records around a call copies them again.
        self._tables: dict[tuple[int, ...], tuple[DeviceBuffer, Table]] = {}

    def launch(
        self,
        addresses: Sequence[int],
        rows: int,
        stream: Any,
        blocks_of: Callable[[int, int, int], int],
        graphs: dict[Recorded, Graph],
    ) -> None:
        """Queue a run of so many rows on inputs, outputs and state at these addresses.

        `blocks_of` says of a kernel, rTasks and rows by how many blocks they are run. `graphs` are its
        owner's, which go before their kernels do.
        """
        key = Mode.PER_OP, rows, tuple(addresses)
        graph = graphs.get(key)
        if graph is not None:
            graph.launch(stream)
            return
        table = self._table(key[2], stream, graphs)
        blocks = blocks_of(self._append.kernel, self._append.tasks, rows)
        arguments = (self._home.serial, table.address, rows, -(-rows // 16) * 16)
        queue = partial(self._kernel.launch, blocks, arguments)
        queue(stream)
        # To record takes as long as some launches: it is done of what comes again.
        if key in self._met:
            graphs[key] = Graph(queue, self._stream)
        if len(self._met) >= _CALLS:
            self._forget(stream, graphs)
        self._met.add(key)

    def _forget(self, stream: Any, graphs: dict[Recorded, Graph]) -> None:
        call("cuStreamSynchronize", stream)
        graphs.clear()
        self._met.clear()

    def _table(
        self, addresses: tuple[int, ...], stream: Any, graphs: dict[Recorded, Graph]
    ) -> DeviceBuffer:
        found = self._tables.get(addresses)
        if found is not None:
            return found[0]
        if len(self._tables) >= _TABLES:
            self._forget(stream, graphs)
            self._tables.clear()
        table = self._pool.take(self._home.table_bytes)
        bases = self._home.bases_of(addresses, table.address)
        table.upload(bases, stream)
        self._tables[addresses] = table, bases
        return table
