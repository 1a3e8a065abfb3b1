"""Which launches of a program depend on which, and how long the chains are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from irkit.schedule.footprint import Footprints, Mask, Touch, overlap


@dataclass
class Dependences:
    """The launch graph: read-after-write, write-after-read, write-after-write in program order.

    `sources[j]` maps each launch i < j that j depends on to the touches through which it does.
    """

    sources: list[dict[int, list[tuple[Touch, Touch]]]]
    users: list[list[int]] = field(default_factory=list[list[int]])

    def is_local(self, source: int, user: int, veus: int) -> bool:
        """Whether every dependence stays on one vEU when both launches lie on the same `veus`."""
        return all(_stays(overlap(a, b), veus) for a, b in self.sources[user][source])


def _stays(conflict: Mask, veus: int) -> bool:
    first, second = np.nonzero(conflict)
    return bool((first % veus == second % veus).all())


def dependences(feet: Footprints) -> Dependences:
    """The launch graph of a program."""
    sources: list[dict[int, list[tuple[Touch, Touch]]]] = [{} for _ in feet.launches]
    for a, b in feet.conflicts:
        if a.launch != b.launch and overlap(a, b).any():
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
