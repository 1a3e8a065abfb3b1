"""Programs of irkit's in the streams of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from irkit.dags.programs import IN_STREAMS, ProgramSource
from irkit.errors import DeviceError
from irkit.runtime.cuda.driver import call
from irkit.runtime.cuda.executor import CudaExecutor
from irkit.runtime.cuda.residence import Residence
from irkit.runtime.variant import Variant
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Port


@dataclass(frozen=True, eq=False)
class GpuWorkspace:
    """An arena, and the counters of a persistent run."""

    residence: Residence

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Addresses and bytes."""
        return self.residence.own


class GpuProgram:
    """A program on a GPU: its tables and constants are there once, for all that run it."""

    def __init__(self, executor: CudaExecutor) -> None:
        self._executor = executor
        self.inputs: tuple[Port, ...] = executor.program.inputs
        self.outputs: tuple[Port, ...] = executor.program.outputs

    def workspace(self, rows: int) -> GpuWorkspace:
        """Memory of its own for runs of so many rows."""
        plan = self._executor.plan_of(rows)
        made = GpuWorkspace(plan.residence.beside(-(-rows // 16) * 16, plan.stream))
        self._whole()
        return made

    def bind(
        self, workspace: GpuWorkspace, addresses: Sequence[int], rows: int
    ) -> Callable[[Any], None]:
        """What puts a run on these addresses into a stream."""
        dynamic = all(port.shape[:1] == (-1,) for port in self.outputs)
        if rows == 0 and dynamic:
            return _nothing
        plan = self._executor.plan_of(rows)
        residence = workspace.residence.bound(list(addresses), plan.stream)
        mode = _mode(plan)
        run = plan.within(residence, mode)
        self._whole()
        return lambda stream: run.put(mode, rows, stream)

    def _whole(self) -> None:
        """What was copied to new memory is there, and what had that memory before has ended."""
        self._executor.synchronize()
        call("cuStreamSynchronize", self._executor.stream)


def _nothing(stream: Any) -> None:
    """No rows, no run."""


def _mode(executor: CudaExecutor) -> Mode:
    """Whichever is asked for, or else the first that can be. Raises DeviceError where none can."""
    choice = executor.choice
    # In another mode the host walks loops.
    streams = (Mode.PERSISTENT,) if executor.program.steps else IN_STREAMS
    wanted = streams if choice.fixed is None else (choice.fixed,)
    found = next((mode for mode in wanted if mode in choice.allowed and mode in streams), None)
    if found is None:
        refused = "; ".join(
            f"{mode}: {choice.refused.get(mode, 'not in a stream')}" for mode in wanted
        )
        raise DeviceError(f"the program cannot run in a stream of a DAG: {refused}")
    return found


def gpu_program(source: ProgramSource) -> GpuProgram:
    """A program, loaded where it is not already. Raises DeviceError where it cannot be."""
    variant = source if isinstance(source, Variant) else Variant(source)
    if not isinstance(variant.executor, CudaExecutor):
        variant = Variant(variant.artifact)
    if not isinstance(variant.executor, CudaExecutor):
        raise DeviceError("the program was compiled for a CPU: a stream of a GPU cannot run it")
    return GpuProgram(variant.executor)
