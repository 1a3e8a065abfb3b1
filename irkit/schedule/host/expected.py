"""When the tasks of a plan are expected to start and end, how long it takes by that, and what it costs.

Estimates: no more than what it takes to tell one plan from another. Kernels that run side by side are taken
not to slow each other; copies in one direction are, as a GPU has one engine for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from irkit.schedule.host.model import HOST, HostPlan, Kind, Use

LATENCY_NS: Final[dict[Kind, float]] = {
    "kernel": 2_000.0,
    "program": 5_000.0,
    "function": 10_000.0,
    "collective": 20_000.0,
    "to_device": 2_000.0,
    "to_host": 2_000.0,
}
"""What the shortest task of a kind takes."""
BYTES_PER_NS: Final[dict[Kind, float]] = {
    "kernel": 3_000.0,
    "program": 3_000.0,
    "function": 10.0,
    "collective": 100.0,
    "to_device": 50.0,
    "to_host": 50.0,
}
"""How fast it goes through its arrays."""
WAIT_NS = 1_500.0
"""So much later a stream goes on after an event of another one."""
EVENT_NS = 1_000.0
"""What an event costs the host, which records it and lets a stream wait for it."""
STREAM_NS = 1_600.0
"""What a further stream costs the host when it starts a graph: its branch is started by itself."""


class Times(NamedTuple):
    """Of a task: when its queue comes to it, when it starts, and when it ends, in ns."""

    arrived: float
    start: float
    end: float


@dataclass(frozen=True)
class Expected:
    """Times in ns. `tasks`: of each. `busy`: what host, computing, copies in and copies out have to do, by
    name."""

    tasks: Sequence[Times]
    busy: dict[str, float]

    @property
    def makespan(self) -> float:
        """From start to end."""
        return max((one.end for one in self.tasks), default=0.0)

    @property
    def bound(self) -> float:
        """What the busiest has to do, which no order is faster than."""
        return max(self.busy.values(), default=0.0)

    @property
    def one_by_one(self) -> float:
        """All tasks, each when the one before it has ended."""
        return sum(self.busy.values())

    @property
    def overlap(self) -> float:
        """The share of the bound in the makespan: 1 where something is busy all the time."""
        return self.bound / self.makespan if self.makespan else 1.0

    @property
    def gain(self) -> float:
        """How many times faster than one by one."""
        return self.one_by_one / self.makespan if self.makespan else 1.0


def estimate(kind: Kind, uses: Sequence[Use]) -> float:
    """Nanoseconds of a task, by the bytes that it touches. A copy has two ends of as many bytes."""
    sizes = [math.prod(use.region.shape) * use.region.itemsize for use in uses]
    moved = max(sizes, default=0) if kind in ("to_device", "to_host") else sum(sizes)
    return LATENCY_NS[kind] + moved / BYTES_PER_NS[kind]


ENGINES: Final[dict[Kind, str]] = {
    "kernel": "computing",
    "program": "computing",
    "function": "the host",
    "collective": "the group",
    "to_device": "copies in",
    "to_host": "copies out",
}
"""What does a kind of tasks."""


def expected(plan: HostPlan) -> Expected:
    """When each task of a plan is expected to run: when its queue is free, its events have come, and the host
    has come to it, which does its own tasks on the way."""
    free: dict[int, float] = {}
    engines: dict[Kind, float] = {"to_device": 0.0, "to_host": 0.0}
    busy: dict[str, float] = {}
    found: list[Times] = []
    for task, place in zip(plan.tasks, plan.places, strict=True):
        arrived = max(free.get(place.queue, 0.0), free.get(HOST, 0.0))
        start = arrived + (WAIT_NS if place.waits else 0.0)
        start = max([start, *(found[wait].end + WAIT_NS for wait in place.waits)])
        start = max(start, engines.get(task.kind, 0.0))
        one = Times(arrived, start, start + task.cost_ns)
        if task.kind in engines:
            engines[task.kind] = one.end
        free[place.queue] = one.end
        found.append(one)
        engine = ENGINES[task.kind]
        busy[engine] = busy.get(engine, 0.0) + task.cost_ns
    return Expected(found, busy)


def cost(plan: HostPlan) -> float:
    """What a plan costs, in ns: how long it takes, and what its events and streams take the host."""
    waits = sum(len(place.waits) for place in plan.places)
    further = max(plan.queues - 2, 0)
    return expected(plan).makespan + EVENT_NS * waits + STREAM_NS * further
