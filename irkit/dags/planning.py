"""From recorded steps to a plan: regions of buffers, queues and waits, proved; what a plan says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irkit.dags.steps import HOST_BUFFER, Step
from irkit.schedule.host.model import HOST, HostBuffer, HostPlan, HostTask, Use
from irkit.schedule.host.overlap import conflict
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.host.verifier import verify

Span = tuple[int, int]


def plan_of(steps: Sequence[Step], streams: int) -> HostPlan:
    """The plan of recorded steps, proved. Raises ScheduleError where it is wrong, which irkit is at
    fault for."""
    buffers, tasks = with_buffers([step.task for step in steps])
    plan = assign_streams(buffers, tasks, streams)
    verify(plan)
    return plan


def with_buffers(tasks: Sequence[HostTask]) -> tuple[list[HostBuffer], list[HostTask]]:
    """Tasks whose regions are counted from the start of buffers: all that overlaps lies in one."""
    spaces: dict[int, list[Span]] = {}
    for task in tasks:
        for use in task.uses:
            spaces.setdefault(use.region.buffer, []).append(use.region.hull)
    joined = {space: _joined(found) for space, found in spaces.items()}
    buffers: list[HostBuffer] = []
    numbers: dict[tuple[int, Span], int] = {}

    def moved(use: Use) -> Use:
        region = use.region
        low, high = region.hull
        span = next(s for s in joined[region.buffer] if s[0] <= low and high <= s[1])
        # By first use: names are the same wherever memory lies.
        number = numbers.setdefault((region.buffer, span), len(buffers))
        if number == len(buffers):
            where = "host" if region.buffer == HOST_BUFFER else "device"
            buffers.append(HostBuffer(f"{where}{number}", where, span[1] - span[0]))
        return replace(use, region=replace(region, buffer=number, offset=region.offset - span[0]))

    made = [replace(task, uses=tuple(map(moved, task.uses))) for task in tasks]
    return buffers, made


def _joined(spans: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low < found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        elif not found or (low, high) != found[-1]:
            found.append((low, high))
    return found


def report_of(plan: HostPlan) -> list[dict[str, Any]]:
    """For each task what it is, where it came from, its arrays, its stream, and what it waits for and
    why."""
    return [
        {
            "task": number,
            "name": task.name,
            "kind": task.kind,
            "line": task.origin,
            "arrays": {use.name or str(n): use.access for n, use in enumerate(task.uses)},
            "stream": place.queue if place.queue != HOST else "host",
            "waits": [{"task": wait, "why": reason(plan, wait, number)} for wait in place.waits],
        }
        for number, (task, place) in enumerate(zip(plan.tasks, plan.places, strict=True))
    ]


def reason(plan: HostPlan, first: int, second: int) -> str:
    """Why a task comes after another: "reads device0, which 'square' writes"."""
    for b in plan.tasks[second].uses:
        for a in plan.tasks[first].uses:
            if conflict(a, b):
                name = plan.buffers[a.region.buffer].name
                return f"{b.access} {name}, which '{plan.tasks[first].name}' {a.access}"
    return "by order alone"
