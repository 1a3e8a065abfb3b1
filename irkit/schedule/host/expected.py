"""When the tasks of a plan are expected to start and end, and what a plan costs by that.

Estimates: no more than what it takes to tell one plan from another. Kernels that run side by side are taken
not to slow each other; copies in one direction are, as a GPU has one engine for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from irkit.schedule.host.model import HostPlan, HostTask, Kind, Place, Use

LATENCY_NS: Final[dict[Kind, float]] = {
    "kernel": 2_000.0,
    "program": 5_000.0,
    "function": 10_000.0,
    "to_device": 2_000.0,
    "to_host": 2_000.0,
}
"""What the shortest task of a kind takes."""
BYTES_PER_NS: Final[dict[Kind, float]] = {
    "kernel": 3_000.0,
    "program": 3_000.0,
    "function": 10.0,
    "to_device": 50.0,
    "to_host": 50.0,
}
"""How fast it goes through its arrays."""
WAIT_NS = 1_500.0
"""So much later a stream goes on after an event of another one."""
EVENT_NS = 1_000.0
"""What an event costs the host, which records it and lets a stream wait for it."""


class Expected(NamedTuple):
    """Of a task: when its queue comes to it, when it starts, and when it ends, in ns."""

    arrived: float
    start: float
    end: float


def estimate(kind: Kind, uses: Sequence[Use]) -> float:
    """Nanoseconds of a task, by the bytes that it touches. A copy has two ends of as many bytes."""
    sizes = [math.prod(use.region.shape) * use.region.itemsize for use in uses]
    moved = max(sizes, default=0) if kind in ("to_device", "to_host") else sum(sizes)
    return LATENCY_NS[kind] + moved / BYTES_PER_NS[kind]


def expected(tasks: Sequence[HostTask], places: Sequence[Place]) -> list[Expected]:
    """When each task is expected to run."""
    free: dict[int, float] = {}
    engines: dict[Kind, float] = {"to_device": 0.0, "to_host": 0.0}
    found: list[Expected] = []
    for task, place in zip(tasks, places, strict=True):
        arrived = free.get(place.queue, 0.0)
        start = arrived + (WAIT_NS if place.waits else 0.0)
        start = max([start, *(found[wait].end + WAIT_NS for wait in place.waits)])
        start = max(start, engines.get(task.kind, 0.0))
        one = Expected(arrived, start, start + task.cost_ns)
        if task.kind in engines:
            engines[task.kind] = one.end
        free[place.queue] = one.end
        found.append(one)
    return found


def cost(plan: HostPlan) -> float:
    """What a plan costs, in ns: how long it takes, and what its events take the host."""
    ends = [one.end for one in expected(plan.tasks, plan.places)]
    return max(ends, default=0.0) + EVENT_NS * sum(len(place.waits) for place in plan.places)
