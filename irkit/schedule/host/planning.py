"""From tasks in program order to a plan: queues and waits for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from irkit.schedule.host.frontier import Frontier
from irkit.schedule.host.model import HostBuffer, HostPlan, HostTask, Kind, Place
from irkit.schedule.host.overlap import conflict
from irkit.schedule.host.streams import Placed, Streams

STREAMS = 8
"""Streams that a plan uses at most."""


Policy = Literal["disjoint", "by-kind"]
"""How streams are chosen: by who comes after whom, or one for each kind of task."""

BY_KIND: Final[Mapping[Kind, int]] = {"to_device": 1, "kernel": 2, "program": 2, "to_host": 3}
"""A GPU has an engine for copies in each direction beside its multiprocessors: where tasks of a kind wait
for one another anyway, a stream for each keeps all three busy."""


def assign_streams(
    buffers: Sequence[HostBuffer],
    tasks: Sequence[HostTask],
    streams: int = STREAMS,
    choice: Policy = "disjoint",
) -> HostPlan:
    """Every task in a queue, with the waits that its conflicts need and program order does not give."""
    policy, frontier = Streams(streams), Frontier[Placed](lambda placed: placed.queue)
    places: list[Place] = []
    for number, task in enumerate(tasks):
        parents = [parent for use in task.uses for parent in frontier.before(use)]
        stream = BY_KIND.get(task.kind) if choice == "by-kind" else None
        placed, waits = policy.place(number, parents, task.on_host, stream=stream)
        places.append(Place(placed.queue, tuple(w.number for w in waits)))
        for use in task.uses:
            frontier.add(placed, use)
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
