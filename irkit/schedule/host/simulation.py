"""How long a plan takes if each task takes its estimated time."""

from __future__ import annotations

from dataclasses import dataclass

from irkit.schedule.host.model import HostPlan


@dataclass(frozen=True)
class Expected:
    """Times in ns. `makespan`: from start to end, a task starting when its queue is free and its events came.
    `bound`: what the busiest of host, computing, copies in and copies out has to do, which no order is faster
    than. `one_by_one`: all tasks, each when the one before it has ended.
    """

    makespan: float
    bound: float
    one_by_one: float

    @property
    def overlap(self) -> float:
        """The share of the bound in the makespan: 1 where something is busy all the time."""
        return self.bound / self.makespan if self.makespan else 1.0

    @property
    def gain(self) -> float:
        """How many times faster than one by one."""
        return self.one_by_one / self.makespan if self.makespan else 1.0


def expected(plan: HostPlan) -> Expected:
    """What a plan's own costs say of it."""
    free = [0.0] * plan.queues
    ends: list[float] = []
    busy: dict[str, float] = {}
    for task, place in zip(plan.tasks, plan.places, strict=True):
        start = max([free[place.queue], *(ends[wait] for wait in place.waits)])
        ends.append(start + task.cost_ns)
        free[place.queue] = ends[-1]
        engine = "computing" if task.kind in ("kernel", "program") else task.kind
        busy[engine] = busy.get(engine, 0.0) + task.cost_ns
    return Expected(
        max(ends, default=0.0), max(busy.values(), default=0.0), sum(t.cost_ns for t in plan.tasks)
    )


def device_bytes(plan: HostPlan) -> int:
    """Bytes of the device that a plan has from start to end."""
    return sum(buffer.nbytes for buffer in plan.buffers if buffer.space == "device")
