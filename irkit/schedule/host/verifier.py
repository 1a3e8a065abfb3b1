"""The proof of a plan: whatever two tasks conflict over, one certainly ends before the other starts.

It knows nothing of how the plan was made: pairs of uses are compared, and the order is that of
`HappensBefore`, which executes the plan's schedule abstractly. A use whose bytes a later write has covered,
and that certainly ends before that write, is compared no more: whoever conflicts with it conflicts with the
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.host.model import HOST, HostPlan, Use
from irkit.schedule.host.standing import Standing
from irkit.schedule.wellformed import reject


def verify(plan: HostPlan) -> None:
    """Raises ScheduleError with the rule and the tasks where a plan is not proved.

    Rules: 'placement' (queues and waits name what exists, host tasks are on the host's queue),
    'access' (regions lie in their buffers), 'deadlock', and 'race'.
    """
    _check_places(plan)
    _check_regions(plan)
    order = HappensBefore(plan.schedule())
    for first, second, a, b in _conflicts(plan):
        if not order.before(first, 0, second, 0):
            kind = f"{_word(b)} after {_word(a)}"
            name = plan.buffers[a.region.buffer].name
            reject(
                "race",
                f"{kind} on '{name}': {describe(plan, first)} does not happen before "
                f"{describe(plan, second)}",
            )


def describe(plan: HostPlan, number: int) -> str:
    """A task in words: its number, name, queue and line."""
    task, place = plan.tasks[number], plan.places[number]
    where = "the host" if place.queue == HOST else f"stream {place.queue}"
    origin = f" ({task.origin})" if task.origin else ""
    return f"task {number} '{task.name}' on {where}{origin}"


def _word(use: Use) -> str:
    return "write" if use.writes else "read"


def _check_places(plan: HostPlan) -> None:
    if len(plan.places) != len(plan.tasks):
        reject("placement", f"{len(plan.tasks)} tasks have {len(plan.places)} places")
    for number, (task, place) in enumerate(zip(plan.tasks, plan.places, strict=True)):
        if place.queue < 0 or task.on_host != (place.queue == HOST):
            reject("placement", f"{describe(plan, number)}: a {task.kind} cannot be there")
        if any(not 0 <= other < len(plan.tasks) for other in place.waits):
            reject("placement", f"{describe(plan, number)} waits for a task that does not exist")


def _check_regions(plan: HostPlan) -> None:
    for number, task in enumerate(plan.tasks):
        for use in task.uses:
            if not 0 <= use.region.buffer < len(plan.buffers):
                reject("access", f"{describe(plan, number)} uses a buffer that does not exist")
            low, high = use.region.hull
            buffer = plan.buffers[use.region.buffer]
            if low < 0 or high > buffer.nbytes:
                reject(
                    "access",
                    f"{describe(plan, number)} {use.access} bytes {low} to {high} of '{buffer.name}', "
                    f"which has {buffer.nbytes}",
                )


def _conflicts(plan: HostPlan) -> Iterator[tuple[int, int, Use, Use]]:
    """Pairs of tasks, in program order, and the uses that they conflict by: all of them, but for those whose
    order follows from that of other pairs. Who asks for the next pair has found the last one in order."""
    standing = Standing()
    for second, task in enumerate(plan.tasks):
        for b in task.uses:
            for first, a in standing.before(b):
                yield first, second, a, b
        for use in task.uses:
            standing.add(second, use)
