"""Which launches of a program depend on which, and how long the chains are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from irkit.schedule.box_overlap import Mask
from irkit.schedule.footprint import Footprints, Touch, overlap, overlaps


@dataclass
class Dependences:
    """The launch graph: read-after-write, write-after-read, write-after-write in program order.

    `sources[j]` maps each launch i < j that j depends on to the touches through which it does.
    """

    sources: list[dict[int, list[tuple[Touch, Touch]]]]
    users: list[list[int]] = field(default_factory=list[list[int]])

    def is_local(self, source: int, user: int, veus: int) -> bool:
        """Whether every dependence stays on one vEU when both launches lie on the same `veus`."""
        return all(one_lane(a, b, veus).all() for a, b in self.sources[user][source])


def one_lane(a: Touch, b: Touch, veus: int) -> Mask:
    """For each overlapping pair of groups, whether all its rTasks are on one lane: [pairs]."""
    first, second = overlap(a, b)
    low_a, high_a = a.groups.lanes(veus)
    low_b, high_b = b.groups.lanes(veus)
    return np.minimum(low_a[first], low_b[second]) == np.maximum(high_a[first], high_b[second])


def dependences(feet: Footprints) -> Dependences:
    """The launch graph of a program."""
    sources: list[dict[int, list[tuple[Touch, Touch]]]] = [{} for _ in feet.launches]
    for a, b in feet.conflicts:
        if a.launch != b.launch and overlaps(a, b):
            sources[b.launch].setdefault(a.launch, []).append((a, b))
    users: list[list[int]] = [[] for _ in feet.launches]
    for user, found in enumerate(sources):
        for source in found:
            users[source].append(user)
    return Dependences(sources, users)


def critical_path(graph: Dependences, durations: list[float]) -> list[float]:
    """For each launch, the time from its start to the end of the longest chain that it heads."""
    length = list(durations)
    for launch in reversed(range(len(durations))):
        tail = max((length[user] for user in graph.users[launch]), default=0.0)
        length[launch] = durations[launch] + tail
    return length
