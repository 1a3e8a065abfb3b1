"""Waves: sets of launches that do not depend on each other and run side by side on the device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irkit.schedule.allotments import Allotment, Speedup, side_by_side
from irkit.schedule.dependences import Dependences
from irkit.schedule.model import Launch, Option, VDevice

MUCH_SOONER = 0.95
"""More shelves must end a layer within this share of the time: estimates are rough, waits are certain."""


@dataclass
class Waves:
    """`members[w]` are the launches of wave w, most urgent first; `allotments[n]` is what launch n gets."""

    members: list[list[int]] = field(default_factory=list[list[int]])
    allotments: list[Allotment] = field(default_factory=list[Allotment])


def layers(graph: Dependences) -> list[list[int]]:
    """Kahn layering: each launch one layer below the lowest that it depends on."""
    depth: list[int] = []
    for sources in graph.sources:
        depth.append(1 + max((depth[source] for source in sources), default=-1))
    result: list[list[int]] = [[] for _ in range(1 + max(depth, default=-1))]
    for launch, level in enumerate(depth):
        result[level].append(launch)
    return result


def duration(launch: Launch | Option, veus: int) -> float:
    """Estimated time on `veus` vEUs, in ns."""
    return math.ceil(launch.tasks / veus) * launch.cost_ns


def fill_waves(
    graph: Dependences, layered: list[list[int]], found: list[Allotment], veus: int
) -> Waves:
    """Waves of launches in `layered`, each of the most urgent first, that fit on `veus` vEUs.

    A launch goes to the first wave after its sources with enough free vEUs. So what is left of a split
    layer and the next layer share a wave wherever dependences allow it.
    """
    waves = Waves(allotments=found)
    wave_of = [0] * len(found)
    room: list[int] = []
    for launch in (launch for layer in layered for launch in layer):
        width = found[launch].veus
        wave = 1 + max((wave_of[source] for source in graph.sources[launch]), default=-1)
        while wave < len(room) and room[wave] < width:
            wave += 1
        if wave == len(room):
            room.append(veus)
            waves.members.append([])
        room[wave] -= width
        wave_of[launch] = wave
        waves.members[wave].append(launch)
    return waves


class Company:
    """Divides the device among the launches of a layer."""

    def __init__(self, device: VDevice) -> None:
        self.device = device
        self._known: dict[tuple[Speedup, ...], tuple[float, list[Allotment]]] = {}

    def allot(self, members: Sequence[Speedup]) -> list[Allotment]:
        """What each launch of a layer gets: all together, or in several shelves one after another, whichever
        is estimated to end sooner. The first members are the most urgent."""
        order = sorted(range(len(members)), key=lambda n: -members[n].steps[0].time)
        least, best = math.inf, list[Allotment]()
        for shelves in self._shelves([members[n] for n in order]):
            total, found = self._in_shelves(shelves)
            if total < MUCH_SOONER * least:
                least, best = total, found
        back = dict(zip(order, best, strict=True))
        return [back[n] for n in range(len(members))]

    def _shelves(self, members: list[Speedup]) -> Iterator[list[tuple[Speedup, ...]]]:
        """Ways worth trying, members of like times on a shelf: as few shelves as hold all, and twice as many
        again and again; two, between any members that are not equal."""
        count = fewest = -(-len(members) // self.device.veus)
        while count < len(members):
            yield _cut(members, [len(members) * n // count for n in range(1, count)])
            count *= 2
        if fewest <= 2:
            unequal = [n for n in range(1, len(members)) if members[n] is not members[n - 1]]
            for place in [n for n in unequal if max(n, len(members) - n) <= self.device.veus]:
                yield _cut(members, [place])
        yield _cut(members, range(1, len(members)))

    def _in_shelves(self, shelves: Sequence[tuple[Speedup, ...]]) -> tuple[float, list[Allotment]]:
        """(end, what each gets)"""
        total = (len(shelves) - 1) * self.device.wait_ns
        found: list[Allotment] = []
        for part in shelves:
            if part not in self._known:
                shelf = side_by_side(part, self.device.veus)
                self._known[part] = max(a.time for a in shelf), shelf
            end, shelf = self._known[part]
            total += end
            found += shelf
        return total, found


def _cut(members: list[Speedup], places: Sequence[int]) -> list[tuple[Speedup, ...]]:
    """`members` in parts that begin at 0 and at each of `places`."""
    ends = [*places, len(members)]
    return [tuple(members[a:b]) for a, b in zip([0, *places], ends, strict=True)]
