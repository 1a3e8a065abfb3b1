"""What runs a compiled program: one interface, an implementation for each target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from irkit.errors import UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.loading import load_source
from irkit.runtime.mode_choice import ModeChoice, check_mode
from irkit.runtime.state_memory import StateMemory
from irkit.schedule.tables import Program
from irkit.weights import Array


class Executor(Protocol):
    """Runs one program; any number of threads may call it."""

    @property
    def program(self) -> Program:
        """What the emitted module says of itself."""
        ...

    @property
    def plans(self) -> Sequence[Executor]:
        """What runs each of its plans, in the order of their rows; this one is the first."""
        ...

    @property
    def choice(self) -> ModeChoice:
        """The modes that the program may run in here, and which one a call takes."""
        ...

    @property
    def state(self) -> StateMemory | None:
        """What lasts from run to run, if anything does."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """Why libraries that the program would call are not called."""
        ...

    def again(self, inputs: Sequence[Any]) -> list[Any] | None:
        """As `run`, for inputs that are known to be such as came before; None for others."""
        ...

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order, for one value an input. Raises InvalidInputError, DeviceError."""
        ...


class Traced(Executor, Protocol):
    """An executor whose calls leave a trace."""

    @property
    def last(self) -> Traced:
        """What ran the last call: the executor of the plan for its rows."""
        ...

    def rows(self) -> Array:
        """The last call, a row per rTask: append, rTask, vEU, arrived, start, end; the last three in ns."""
        ...


def traced_executor(artifact: Artifact, executor: Executor, mode: str) -> Traced:
    """What runs a program in `mode` with a clock around every wait and every rTask.

    Raises UnsupportedError for a mode that is not traced, DeviceError where the device is not there.
    """
    if isinstance(executor, CpuExecutor):
        from irkit.runtime.cpu_trace import TracedExecutor

        return TracedExecutor(executor, mode)
    from irkit.runtime.cuda.absent import AbsentDevice

    if isinstance(executor, AbsentDevice):
        executor.run(())
    from irkit.runtime.cuda.executor import CudaExecutor
    from irkit.runtime.cuda.trace import TracedCudaExecutor

    if not isinstance(executor, CudaExecutor):
        raise UnsupportedError("measured timelines of what is neither a CPU nor a GPU")
    return TracedCudaExecutor(executor, artifact.source, mode)


def make_executor(artifact: Artifact, info: ModelInfo, mode: str) -> Executor:
    """An executor of the artifact's target. Raises DeviceError for a mode that it cannot run in."""
    check_mode(artifact.target, mode)
    if artifact.target == "cuda":
        from irkit.runtime.cuda.executor import CudaExecutor

        return CudaExecutor.from_artifact(artifact, info, mode)
    return CpuExecutor(load_source(artifact), artifact.weights, info, mode)
