"""Groups of threads of one process: what tests and interpreters use."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from irkit.ranks import SimulatedMember, reduced, simulated
from irkit.errors import DeviceError
from irkit.runtime.dist.engine import HostEngine
from irkit.weights import Array


class SimulatedEngine(HostEngine):
    """A rank that is a thread."""

    name = "a simulated group"

    def __init__(self, member: SimulatedMember) -> None:
        self._member = member
        self.rank, self.size = member.rank, member.size

    def check(self, dtype: np.dtype[Any]) -> None:
        """As `Engine` has it: NumPy has a type for all."""

    def all_reduce(self, array: Any, kind: str) -> Any:
        """As `Engine` has it."""
        return reduced(self._met(array), kind)

    def all_gather(self, array: Any) -> Any:
        """As `Engine` has it."""
        return np.stack(self._met(array))

    def broadcast(self, array: Any, root: int) -> Any:
        """As `Engine` has it."""
        return self._met(array)[root].copy()

    def exchange(self, words: Array) -> Array:
        """As `Engine` has it."""
        return np.stack(self._met(words))

    def leave(self) -> None:
        """This rank has failed: the others are told."""
        self._member.leave()

    def _met(self, array: Any) -> list[Any]:
        try:
            return self._member.exchange(array)
        except threading.BrokenBarrierError:
            raise DeviceError(f"rank {self.rank} of {self.size}: another rank has failed") from None


def simulated_group(size: int, seconds: float = 60.0) -> list[SimulatedEngine]:
    """The ranks of a group of so many threads."""
    return [SimulatedEngine(member) for member in simulated(size, seconds)]
