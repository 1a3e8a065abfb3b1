"""Ranks of a group, in NumPy: what they bring together, and groups of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from irkit.weights import Array

REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add,
    "mean": np.add,
    "max": np.maximum,
    "min": np.minimum,
}


class Meeting(Protocol):
    """A member of a group: its rank, how many there are, and what all bring."""

    @property
    def rank(self) -> int:
        """From 0."""
        ...

    @property
    def size(self) -> int:
        """How many ranks there are."""
        ...

    def exchange(self, own: Array) -> list[Array]:
        """What each rank brings, in their order."""
        ...


class Alone:
    """A group of one."""

    rank, size = 0, 1

    def exchange(self, own: Array) -> list[Array]:
        """As `Meeting` has it."""
        return [own]


def reduced(arrays: Sequence[Array], kind: str) -> Array:
    """Arrays of all ranks reduced, in the order of ranks."""
    found = arrays[0].copy()
    for other in arrays[1:]:
        found = REDUCTIONS[kind](found, other)
    return (found / len(arrays)).astype(found.dtype) if kind == "mean" else found


class SimulatedMember:
    """A rank of a group whose members are threads of one process."""

    def __init__(self, rank: int, table: list[Array | None], meet: threading.Barrier) -> None:
        self.rank, self.size, self._table, self._meet = rank, len(table), table, meet

    def exchange(self, own: Array) -> list[Array]:
        """As `Meeting` has it. Raises BrokenBarrierError where another rank has failed."""
        self._table[self.rank] = own
        self._meet.wait()
        found = [a for a in self._table if a is not None]
        # Nobody brings the next array before all have seen this one.
        self._meet.wait()
        return found

    def leave(self) -> None:
        """This rank comes no more: whoever waits for it is told."""
        self._meet.abort()


def simulated(size: int, seconds: float = 60.0) -> list[SimulatedMember]:
    """The members of a group of so many ranks, one for each thread; who waits longer for the others than so
    many seconds gives up."""
    table: list[Array | None] = [None for _ in range(size)]
    meet = threading.Barrier(size, timeout=seconds)
    return [SimulatedMember(rank, table, meet) for rank in range(size)]
