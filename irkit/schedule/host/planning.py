"""From tasks in program order to a plan: queues and waits for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from irkit.schedule.host.expected import cost
from irkit.schedule.host.frontier import Frontier
from irkit.schedule.host.model import HostBuffer, HostPlan, HostTask, Place
from irkit.schedule.host.overlap import conflict
from irkit.schedule.host.streams import Choice, Placed, Streams, by_kind, earliest, inherited

STREAMS = 16
"""Streams that a plan uses at most."""
COMPARED = 2_000
"""Of plans of more tasks than this, one is made, and not the best of several."""
Policy = Literal["disjoint", "by-kind"]
"""How streams are chosen: by who comes after whom, or one for each kind of task."""


def assign_streams(
    buffers: Sequence[HostBuffer],
    tasks: Sequence[HostTask],
    streams: int = STREAMS,
    choice: Policy = "disjoint",
) -> HostPlan:
    """Every task in a queue, with the waits that its conflicts need and program order does not give.

    The plan of GrCUDA's policy on all streams, or one that is expected to cost less (`expected.py`): by the
    same policy on fewer streams, where tasks that are short stand in line and need no event, or with each
    task where it is expected to start first.
    """
    if choice == "by-kind":
        return _followed(buffers, tasks, streams, by_kind)
    if len(tasks) > COMPARED:
        return _followed(buffers, tasks, streams, inherited)
    parents = parents_of(tasks)
    found = _placed(buffers, tasks, parents, streams, inherited)
    least = cost(found)
    for chosen in (inherited, earliest):
        for limit in range(streams, 0, -1):
            other = _placed(buffers, tasks, parents, limit, chosen)
            if cost(other) < least:
                found, least = other, cost(other)
    return found


def _followed(
    buffers: Sequence[HostBuffer], tasks: Sequence[HostTask], streams: int, choice: Choice
) -> HostPlan:
    """A plan by what is known of queues so far, in one pass."""
    policy, frontier = (
        Streams(streams, choice=choice),
        Frontier[Placed](lambda placed: placed.queue),
    )
    places: list[Place] = []
    for number, task in enumerate(tasks):
        parents = [parent for use in task.uses for parent in frontier.before(use)]
        placed, waits = policy.place(number, parents, task)
        places.append(Place(placed.queue, tuple(w.number for w in waits)))
        for use in task.uses:
            frontier.add(placed, use)
    return HostPlan(list(buffers), list(tasks), places)


def parents_of(tasks: Sequence[HostTask]) -> list[list[int]]:
    """For each task the earlier ones that it has to come after, less those that others of them stand for."""
    # Which queue a task is in is not known yet: each stands for itself alone.
    frontier = Frontier[int](lambda number: number, 2 * COMPARED)
    found: list[list[int]] = []
    for number, task in enumerate(tasks):
        found.append(sorted({parent for use in task.uses for parent in frontier.before(use)}))
        for use in task.uses:
            frontier.add(number, use)
    return found


def _placed(
    buffers: Sequence[HostBuffer],
    tasks: Sequence[HostTask],
    parents: Sequence[Sequence[int]],
    streams: int,
    choice: Choice,
) -> HostPlan:
    policy, placed = Streams(streams, choice=choice), list[Placed]()
    places: list[Place] = []
    for number, task in enumerate(tasks):
        before = [placed[parent] for parent in parents[number]]
        one, waits = policy.place(number, before, task)
        placed.append(one)
        places.append(Place(one.queue, tuple(w.number for w in waits)))
    return HostPlan(list(buffers), list(tasks), places)


def dependences(tasks: Sequence[HostTask]) -> list[list[int]]:
    """For each task the earlier ones that it conflicts with, less those that another of them comes after.

    Compares every pair: this is the judge of the frontier, and what a picture shows.
    """
    before: list[set[int]] = []
    direct: list[list[int]] = []
    for number, task in enumerate(tasks):
        found = [n for n in range(number) if conflicting(tasks[n], task)]
        implied = {m for n in found for m in before[n]}
        before.append(implied | set(found))
        direct.append([n for n in found if n not in implied])
    return direct


def conflicting(a: HostTask, b: HostTask) -> bool:
    """Whether the order of two tasks matters."""
    return any(conflict(x, y) for x in a.uses for y in b.uses)
