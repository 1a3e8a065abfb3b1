"""Programs with calls and loops on a CUDA device: one persistent launch, or graphs that the host replays.

In mode `persistent` a call is one launch: the kernel counts the turns of loops itself. In modes `per-wave`
and `per-op` the host walks the loops and replays graphs of what stands in them, as many turns of a loop in
one graph as are a few hundred runs. A graph is recorded once: where slices lie in a turn, the kernel `place`
counts on the device, before each run that has such slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from irkit.runtime.cuda.driver import Graph, Kernel, Module
from irkit.runtime.cuda.facts import LaunchFacts
from irkit.runtime.cuda.memory import DeviceBuffer, Pool
from irkit.runtime.cuda.residence import Residence
from irkit.schedule.modes import Mode
from irkit.schedule.step_tables import block_steps, counted_trips, step_tables
from irkit.schedule.tables import Ran, Repeated, Table

PARAMETERS, _PLACE_PARAMETERS = 8, 6
GRAPH_RUNS = 256
"""Runs that one graph has at most, where it is several turns of a loop."""

Graphs = dict[tuple[Mode, tuple[Ran, ...], int], Graph]
Record = Callable[[Ran, Any], None]
"""Queues one run on a stream, in some mode."""


class StepLaunches:
    """The tables of a program's steps on the device, and what queues a call.

    `graphs` is where recordings are kept: they name kernels, and so must be gone before the module is.
    """

    def __init__(
        self, pool: Pool, home: Residence, module: Module, facts: LaunchFacts, graphs: Graphs
    ) -> None:
        self._pool, self._home, self._graphs = pool, home, graphs
        self.program = program = home.program
        self._stream = pool.stream.handle
        steps = step_tables(program, Mode.PERSISTENT)
        self.blocks = max(steps.busy) + 1
        self._kept: list[DeviceBuffer] = []
        self._table = self._upload(block_steps(program))
        self._moves = self._upload(steps.moves)
        self._depth = steps.depth
        trips = _trips(program.steps, ())
        rows = [[*t, *[1] * (steps.depth - len(t))] for t in trips]
        self._trips = self._upload(np.array(rows, dtype=np.int64))
        # How often each run was placed, as turns of the loops around it.
        self._turns = pool.take(8 * steps.depth * len(trips))
        self._runs = {step: number for number, step in enumerate(_runs(program.steps))}
        place = module.kernel("place", _PLACE_PARAMETERS, facts.threads) if facts.places else None
        self._place: Kernel | None = place

    def _upload(self, table: Table) -> int:
        buffer = self._pool.take(table.nbytes)
        if table.size:
            buffer.upload(np.ascontiguousarray(table), self._stream)
        self._kept.append(buffer)
        return buffer.address

    def arguments(self, home: Residence, epoch: int) -> tuple[int, ...]:
        """What the persistent kernel takes in call number `epoch`, from 1, of those that work in `home`."""
        tables = home.records, home.bases, home.counters, home.meeting, self._table
        # No size is open.
        return (*tables, epoch, 1, 16)

    def play(self, mode: Mode, record: Record, stream: Any) -> None:
        """Queue a call whose runs are each queued by `record`, one behind another."""
        if self._place is not None:
            self._turns.clear(stream)
        self._play(mode, record, Repeated(1, self.program.steps), stream)

    def _play(self, mode: Mode, record: Record, loop: Repeated, stream: Any) -> None:
        runs = [step for step in loop.steps if isinstance(step, Ran)]
        trips = counted_trips(loop)
        if len(runs) < len(loop.steps):
            inner = list(_stretches(loop.steps))
            for _ in range(trips):
                for step in inner:
                    self._play(mode, record, step, stream)
            return
        if not runs:
            return
        together = max(1, min(trips, GRAPH_RUNS // len(runs)))
        whole, rest = divmod(trips, together)
        graph = self._graph(mode, record, runs, together)
        for _ in range(whole):
            graph.launch(stream)
        if rest:
            self._graph(mode, record, runs, rest).launch(stream)

    def _graph(self, mode: Mode, record: Record, runs: Sequence[Ran], turns: int) -> Graph:
        key = mode, tuple(runs), turns
        if key not in self._graphs:
            whole = partial(self._record, record, [*runs] * turns)
            # Capture is not allowed on the default stream; the graph may run on any.
            self._graphs[key] = Graph(whole, self._stream)
        return self._graphs[key]

    def _record(self, record: Record, runs: Sequence[Ran], stream: Any) -> None:
        for run in runs:
            self._put(run, stream)
            record(run, stream)

    def _put(self, run: Ran, stream: Any) -> None:
        """Put the slices of a run where they lie in its next turn."""
        first, last = run.moving
        if self._place is None or first == last:
            return
        at = 8 * self._depth * self._runs[run]
        bases, turns = self._home.bases, self._turns.address + at
        arguments = (bases, self._moves, first, last, turns, self._trips + at)
        self._place.launch(1, arguments, stream)


def _runs(steps: Sequence[Ran | Repeated]) -> Iterator[Ran]:
    """All runs, in order, each once."""
    for step in steps:
        if isinstance(step, Ran):
            yield step
        else:
            yield from _runs(step.steps)


def _trips(steps: Sequence[Ran | Repeated], around: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Of each run the iterations of the loops around it, the outermost first."""
    found: list[tuple[int, ...]] = []
    for step in steps:
        if isinstance(step, Ran):
            found.append(around)
        else:
            found += _trips(step.steps, (*around, counted_trips(step)))
    return found


def _stretches(steps: Sequence[Ran | Repeated]) -> Iterator[Repeated]:
    """Steps as loops: runs between loops are one of a single turn."""
    for straight, group in groupby(steps, lambda step: isinstance(step, Ran)):
        if straight:
            yield Repeated(1, tuple(group))
        else:
            yield from (step for step in group if isinstance(step, Repeated))
