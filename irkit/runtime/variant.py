"""One compiled program of a model: for one input dtype, with what runs it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.row_ranges import called
from irkit.runtime.artifact import Artifact
from irkit.runtime.batch_border import BatchBorder
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.executor import Executor, make_executor, traced_executor
from irkit.runtime.host_arrays import to_host
from irkit.runtime.mode_choice import AUTO
from irkit.runtime.proof import check_proof
from irkit.runtime.row_call import RowCall
from irkit.runtime.state_memory import StateMemory
from irkit.schedule.tables import Port
from irkit.weights import Array

if TYPE_CHECKING:
    from irkit.viewing.timeline import Timeline


class Variant:
    """An artifact, its executor, and the checks that the model makes of its own results."""

    def __init__(
        self, artifact: Artifact, mode: str = AUTO, executor: Executor | None = None
    ) -> None:
        self.artifact = artifact
        self.info = ModelInfo.from_json(artifact.info)
        self.executor: Executor = executor or make_executor(artifact, self.info, mode)
        check_proof(artifact, self.executor.program)
        self.inputs: tuple[Port, ...] = self.executor.program.inputs
        self.outputs: tuple[Port, ...] = self.executor.program.outputs
        self._border = BatchBorder(self.info, self.inputs, self.outputs)

    @cached_property
    def _stored(self) -> bool:
        """Whether it takes what is stored of sparse rows."""
        return any(port.shape == (1, -1) for port in self.inputs)

    @property
    def state(self) -> StateMemory | None:
        """What lasts from run to run, if anything does."""
        return self.executor.state

    @property
    def again(self) -> Callable[[Sequence[Any]], list[Any] | None] | None:
        """What runs inputs such as came before; None where something is done to inputs or outputs."""
        return None if self.info.checks or self._border.moves else self.executor.again

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order. Raises InvalidInputError, UnsupportedError."""
        if self._stored:
            # What is stored is followed without looking: only `CsrRows` has looked.
            raise UnsupportedError("stored elements as arrays: rows come as a CSR matrix")
        if self._border.moves:
            outputs = self._border.leave(self.executor.run(self._border.enter(inputs)))
        else:
            outputs = self.executor.run(inputs)
        return self.checked(outputs)

    def run_for(self, inputs: Sequence[Any], output: str) -> list[Any]:
        """As `run`, of which only the output of a name is looked at: on a CPU others may be anything."""
        executor = self.executor
        if self.info.checks or self._stored or self._border.moves:
            return self.run(inputs)
        if not isinstance(executor, CpuExecutor):
            return self.run(inputs)
        return executor.run(inputs, [port.name for port in self.outputs].index(output))

    def row_call(self, output: str, casts: bool) -> RowCall | None:
        """Calls with one row that want one output, on a CPU; None where more is asked of inputs or outputs
        than an executor does. With `casts`, also float64 where the library itself rounds it."""
        info, executor = self.info, self.executor
        looked_at = info.checks or info.reads_objects or info.is_translated
        looked_at = (
            looked_at or self._border.moves or self._stored or info.indexed or info.frames_only
        )
        if looked_at or not isinstance(executor, CpuExecutor):
            return None
        number = [port.name for port in self.outputs].index(output)
        return executor.row_call(number, casts)

    def checked(self, outputs: list[Any]) -> list[Any]:
        """The model's own outputs, if none of its checks failed in any row. Raises InvalidInputError."""
        if not self.info.checks:
            return outputs
        own = len(outputs) - len(self.info.checks)
        for array, message in zip(outputs[own:], self.info.checks.values(), strict=True):
            host: Array = to_host(array)
            if not host.all():
                row = int(np.flatnonzero(host == 0)[0])
                raise InvalidInputError(f"row {row}: {message}")
        return outputs[:own]

    def report(self) -> dict[str, Any]:
        """What was compiled, for which batch ("any" or "fixed"), and which mode it runs in and why."""
        choice, plans = self.executor.choice, self.executor.plans
        measured = {called(p.program.rows): p.choice.auto.decisions() for p in plans}
        remarks = {"not_called": found} if (found := self.executor.remarks) else {}
        return {
            **self.artifact.report,
            "batch": "any" if self.executor.program.dynamic else "fixed",
            "mode": choice.mode,
            "measured": measured if len(plans) > 1 else choice.auto.decisions(),
            **remarks,
        }

    def kept(self) -> Artifact:
        """What `save` writes."""
        return self.artifact

    @property
    def target(self) -> str:
        """ "cpu" or "cuda"."""
        return self.artifact.target

    def timelines(self, inputs: Sequence[Any] | None, mode: str) -> list[Timeline]:
        """Planned, for each range of rows that there is a plan for, or for the inputs' and as measured.
        Raises UnsupportedError, InvalidInputError."""
        from irkit.viewing.timeline import planned, ranged, timeline

        facts = self.artifact.report
        roperators, wait_ns = facts["roperators"], float(facts["wait_ns"])
        if inputs is None:
            return [planned(p.program, roperators, wait_ns) for p in self.executor.plans]
        probe = copy.copy(self)
        probe.executor = traced = traced_executor(self.artifact, self.executor, mode)
        for _ in range(3):  # the first calls pay for cold caches
            probe.run(inputs)
        program = traced.last.program
        title = f"measured, {mode}" + ranged(program.rows)
        return [
            planned(program, roperators, wait_ns),
            timeline(title, program, roperators, traced.rows()),
        ]
