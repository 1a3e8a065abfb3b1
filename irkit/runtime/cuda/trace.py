"""Run a CUDA program's persistent kernel with a stamp around every wait and every rTask.

The kernel is that of the emitted module with stamps put in (`lower/task_to_numba/traced_walker.py`); it is
compiled when a trace is asked for, so that programs as such carry none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from irkit.errors import UnsupportedError
from irkit.lower.task_to_numba.traced_walker import STAMPS, TICKS, traced
from irkit.row_ranges import Others
from irkit.runtime.cuda.compiling import compile_module
from irkit.runtime.cuda.driver import Module
from irkit.runtime.cuda.executor import PERSISTENT_PARAMETERS, CudaExecutor
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.memory import DeviceArray
from irkit.runtime.mode_choice import ModeChoice
from irkit.schedule.modes import Mode
from irkit.weights import Array


class TracedCudaExecutor(CudaExecutor):
    """An executor whose calls leave `rows`: append, rTask, vEU, arrived, start, end (ns) per rTask.

    Calls run in mode persistent, on the plan of their rows, whose executor is `last`. What is traced is no
    run of the program: its state is put back.
    """

    def __init__(self, plain: CudaExecutor, source: str, mode: str) -> None:
        what = f"a measured timeline on a GPU in mode '{mode}'"
        if mode != Mode.PERSISTENT:
            raise UnsupportedError(f"{what}: it is of runs in mode '{Mode.PERSISTENT}'")
        for plan in plain.plans:
            if Mode.PERSISTENT in plan.choice.refused:
                raise UnsupportedError(f"{what}: {plan.choice.refused[Mode.PERSISTENT]}")
        program, facts = read_facts(source)
        if program.steps:
            raise UnsupportedError(f"{what}: of a program with loops")
        plain.device.activate()
        cubin = compile_module(traced(source, program), ["persistent"], facts.threads, facts.arch)
        self._stamp(plain, Module(cubin, plain.device))
        others = [self._of_plain(plan) for plan in plain.plans[1:]]
        self._traced = Others([plan.program.rows for plan in plain.plans], others)
        self._last: TracedCudaExecutor | None = None

    def _of_plain(self, plain: CudaExecutor) -> TracedCudaExecutor:
        """What traces another plan of the same program."""
        made = copy(self)
        made._stamp(plain, self.module)
        made._traced, made._last = Others[TracedCudaExecutor](), None
        return made

    @property
    def last(self) -> TracedCudaExecutor:
        """What ran the last call."""
        return self._last or self

    def _stamp(self, plain: CudaExecutor, module: Module) -> None:
        """Be as `plain`, but for the kernel of persistent runs."""
        self.__dict__.update(plain.__dict__)
        self.module, facts = module, self.facts
        self._persistent = module.kernel(
            "persistent", PERSISTENT_PARAMETERS + 1, facts.threads, facts.shared_bytes
        )
        self.choice = ModeChoice("cuda", Mode.PERSISTENT, (Mode.PERSISTENT,), plain.choice.refused)
        count = TICKS * self.program.veus + STAMPS * len(self.tables.records)
        buffer = self.pool.take(8 * count)
        self._stamps = DeviceArray(buffer, (count,), np.dtype(np.int64), self.stream)

    def plan_of(self, rows: int) -> TracedCudaExecutor:
        """The executor of the plan for so many rows, which leaves a trace too."""
        found = self._traced.of(rows, self)
        # Not itself, which would keep itself alive.
        self._last = None if found is self else found
        return found

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """As of the program, which keeps its state."""
        if self.state is None:
            return super().run(inputs)
        kept = [self.state.read(number) for number in range(len(self.state.ports))]
        try:
            return super().run(inputs)
        finally:
            for number, array in enumerate(kept):
                self.state.write(number, array)

    def launch(self, mode: Mode, rows: int, stream: Any) -> None:
        """Queue one run over the arrays bound last."""
        self._launch_persistent(rows, stream, self._stamps.buffer.address)

    def rows(self) -> Array:
        """The last call, one row per rTask."""
        if self._last is not None:
            return self._last.rows()
        self.synchronize()
        veus, records = self.program.veus, self.tables.records
        found = self._stamps.numpy()
        where = np.repeat(np.arange(veus), np.diff(self.tables.begin))
        times = nanoseconds(
            found[: TICKS * veus].reshape(veus, 2, 2),
            found[TICKS * veus :].reshape(-1, STAMPS),
            where,
        )
        return np.column_stack([records[:, 5], records[:, 1], where, times])


def nanoseconds(ticks: Array, stamps: Array, where: Array) -> Array:
    """Stamps in cycles of their multiprocessor's clock as nanoseconds from the first tick.

    `ticks` is vEUs×2×2: at the start and the end of its block, the device's timer as it went on, and the
    clock there. Between the two a clock's cycles are taken to be of one length.
    """
    ns, cycles = ticks[:, :, 0] - ticks[:, :, 0].min(), ticks[:, :, 1]
    length = (ns[:, 1] - ns[:, 0]) / np.maximum(cycles[:, 1] - cycles[:, 0], 1)
    since = stamps - cycles[where, :1]
    return ns[where, :1] + since * length[where, None]
