"""What stands in for a CUDA device that is not there: a program for it can be looked at and saved."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NoReturn

from irkit.errors import DeviceError
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.mode_choice import MODES, ModeChoice, not_proved
from irkit.runtime.state_memory import host_state


class AbsentDevice:
    """The executor of a program that was compiled for another machine; `reason` says why it cannot run."""

    remarks: Sequence[str] = ()

    def __init__(self, artifact: Artifact, mode: str, reason: str) -> None:
        self.program, _ = read_facts(artifact.source)
        refused = not_proved("cuda", self.program.modes)
        self.choice = ModeChoice("cuda", mode, MODES["cuda"], refused)
        self.reason = reason
        self.state = host_state(self.program.states)
        self._others = [copy(self) for _ in self.program.others]
        for other, plan in zip(self._others, self.program.others, strict=True):
            other.program = plan

    @property
    def plans(self) -> tuple[AbsentDevice, ...]:
        """What stands in for each of its plans."""
        return (self, *self._others)

    def again(self, inputs: Sequence[Any]) -> None:
        """No call came before."""

    def run(self, inputs: Sequence[Any]) -> NoReturn:
        """Raises DeviceError."""
        raise DeviceError(
            f"this program was compiled for a CUDA device: {self.reason}; save it, and load it on a "
            "machine that has one"
        )
