"""A DAG of kernels as plain data: buffers, the regions that tasks touch, queues and waits.

A *task* is a kernel launch, a program of irkit's, a host function or a copy. A *queue* is what a vEU is to a
schedule: queue 0 is the host, which runs its tasks itself, the others are streams of a GPU. A wait is
an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

import numpy as np

from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule, VDevice

Space = Literal["host", "device"]
Kind = Literal["kernel", "program", "function", "collective", "to_device", "to_host"]

ON_HOST: Final = ("function",)
"""Kinds of tasks that the host does itself; streams do the others."""
HOST = 0
"""The queue of what runs on the host."""


@dataclass(frozen=True)
class HostBuffer:
    """An allocation of `nbytes` in a `space`: whatever shares memory with an array lies in one buffer
    with it."""

    name: str
    space: Space
    nbytes: int


@dataclass(frozen=True)
class Region:
    """Elements of `itemsize` bytes in a buffer: element (i, j, ...) is at offset + i * strides[0] + ...

    All in bytes. `of` makes strides positive and leaves out dimensions that go nowhere, so equal
    regions of an array seen in different ways are equal.
    """

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @staticmethod
    def of(
        buffer: int, offset: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
    ) -> Region:
        """The region of an array whose first element is `offset` bytes into a buffer."""
        if 0 in shape:
            return Region(buffer, offset, (0,), (itemsize,), itemsize)
        kept: list[tuple[int, int]] = []
        for size, stride in zip(shape, strides, strict=True):
            offset += min(stride, 0) * (size - 1)
            if size > 1 and stride:
                kept.append((size, abs(stride)))
        kept.sort(key=lambda dimension: -dimension[1])
        joined: list[tuple[int, int]] = []
        for size, stride in kept:
            if joined and joined[-1][1] == size * stride:
                size *= joined.pop()[0]
            joined.append((size, stride))
        if joined and joined[-1][1] == itemsize:
            # A run of elements is one element of as many bytes: views of other types are compared so.
            itemsize *= joined.pop()[0]
        sizes, steps = tuple(d[0] for d in joined), tuple(d[1] for d in joined)
        return Region(buffer, offset, sizes, steps, itemsize)

    @cached_property
    def hull(self) -> tuple[int, int]:
        """First byte, and the one behind the last; the same twice where there is nothing."""
        if 0 in self.shape:
            return self.offset, self.offset
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return self.offset, self.offset + reach + self.itemsize

    @property
    def dense(self) -> bool:
        """Whether it is every byte of its hull."""
        return not self.shape


@dataclass(frozen=True)
class Use:
    """What a task does with a region. `name` is the argument's."""

    region: Region
    reads: bool
    writes: bool
    name: str = ""

    @property
    def access(self) -> str:
        """ "reads", "writes", "reads and writes"."""
        return " and ".join(
            word for word, true in (("reads", self.reads), ("writes", self.writes)) if true
        )


@dataclass(frozen=True)
class HostTask:
    """One thing to do. `origin` is its line in the user's file, `cost_ns` an estimate of its time."""

    name: str
    kind: Kind
    uses: tuple[Use, ...]
    cost_ns: float = 10_000.0
    origin: str = ""

    @property
    def on_host(self) -> bool:
        """Whether the host runs it; else a stream does."""
        return self.kind in ON_HOST


@dataclass(frozen=True)
class Place:
    """The queue of a task, and the earlier tasks whose events it waits for."""

    queue: int
    waits: tuple[int, ...] = ()


@dataclass
class HostPlan:
    """Tasks in program order, each with a place. Tasks of one queue run in this order."""

    buffers: list[HostBuffer]
    tasks: list[HostTask]
    places: list[Place] = field(default_factory=list[Place])

    @property
    def queues(self) -> int:
        """How many queues there are, the host's among them."""
        return max((place.queue for place in self.places), default=0) + 1

    @property
    def device_bytes(self) -> int:
        """Bytes of the device that it has from start to end."""
        return sum(buffer.nbytes for buffer in self.buffers if buffer.space == "device")

    def schedule(self) -> Schedule:
        """The same as a schedule of one rTask an append, whose vEUs are the queues.

        Buffers are their bytes; what a task touches of one is its hull.
        """
        device = VDevice("host", "host", self.queues, 1, 0, 0.0)
        buffers = [Buffer(b.name, "arena", (b.nbytes,), 1) for b in self.buffers]
        launches = [
            Launch(
                task.name,
                task.name,
                1,
                tuple(_access(use.region) for use in task.uses if use.reads),
                tuple(_access(use.region) for use in task.uses if use.writes),
                cost_ns=task.cost_ns,
            )
            for task in self.tasks
        ]
        appends = [
            Append(number, place.queue, 1, 0, place.waits)
            for number, place in enumerate(self.places)
        ]
        return Schedule(device, buffers, launches, appends)


def _access(region: Region) -> Access:
    return Access(region.buffer, np.array([[region.hull]], np.int64))
