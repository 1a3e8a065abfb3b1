"""Plans of DAGs of kernels as timelines: a row for the host and for each stream, a bar for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irkit.schedule.host.expected import expected
from irkit.schedule.host.model import HOST, HostPlan
from irkit.viewing.timeline import Kernel, Step, Timeline


def planned(plan: HostPlan) -> Timeline:
    """What a plan expects: each task takes its estimated time, from when its queue is free and its
    events came."""
    return _timeline("planned", plan, expected(plan).tasks)


def measured(plan: HostPlan, spans: Mapping[int, tuple[float, float]]) -> Timeline:
    """What was measured: start and end, in ns, of each task."""
    rows = [(spans[n][0], *spans[n]) for n in range(len(plan.tasks))]
    return _timeline("measured", plan, rows)


def _timeline(title: str, plan: HostPlan, rows: Sequence[tuple[float, float, float]]) -> Timeline:
    names = list(dict.fromkeys(task.name for task in plan.tasks))
    kinds = {task.name: task.kind for task in plan.tasks}
    lines = {task.name: task.origin for task in plan.tasks}
    kernels = tuple(Kernel(name, kinds[name], lines[name]) for name in names)
    steps = tuple(
        Step(names.index(task.name), 0, place.waits)
        for task, place in zip(plan.tasks, plan.places, strict=True)
    )
    times = np.array(rows, dtype=np.float64).reshape(-1, 3)
    count = np.arange(len(plan.tasks))
    queues = np.array([place.queue for place in plan.places], dtype=np.int64)
    return Timeline(
        title,
        plan.queues,
        kernels,
        steps,
        count,
        np.zeros_like(count),
        queues,
        *times.T,
        queues=_named(plan),
    )


def _named(plan: HostPlan) -> tuple[str, ...]:
    return tuple("host" if queue == HOST else f"stream {queue}" for queue in range(plan.queues))
