"""Waves: sets of launches that do not depend on each other and fit side by side on the device."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from irkit.schedule.dependences import Dependences
from irkit.schedule.model import Launch, VDevice


@dataclass
class Waves:
    """`members[w]` are the launches of wave w, most urgent first; `widths[n]` vEUs go to launch n."""

    members: list[list[int]] = field(default_factory=list[list[int]])
    widths: list[int] = field(default_factory=list[int])


def layers(graph: Dependences) -> list[list[int]]:
    """Kahn layering: each launch one layer below the lowest that it depends on."""
    depth: list[int] = []
    for sources in graph.sources:
        depth.append(1 + max((depth[source] for source in sources), default=-1))
    result: list[list[int]] = [[] for _ in range(1 + max(depth, default=-1))]
    for launch, level in enumerate(depth):
        result[level].append(launch)
    return result


def duration(launch: Launch, veus: int) -> float:
    """Estimated time of `launch` on `veus` vEUs, in ns."""
    return math.ceil(launch.tasks / veus) * launch.cost_ns


def form_waves(
    graph: Dependences, launches: list[Launch], urgency: list[float], device: VDevice
) -> Waves:
    """Layer the program, split layers too wide for the device, fill the room that is left.

    A launch goes to the first wave after its sources with enough free vEUs. So what is left of a split
    layer and the next layer share a wave wherever dependences allow it.
    """
    waves = Waves(widths=[0] * len(launches))
    wave_of = [0] * len(launches)
    room: list[int] = []
    for layer in layers(graph):
        for launch, width in _widths(layer, launches, device).items():
            waves.widths[launch] = width
        for launch in sorted(layer, key=lambda n: (-urgency[n], n)):
            wave = 1 + max((wave_of[source] for source in graph.sources[launch]), default=-1)
            while wave < len(room) and room[wave] < waves.widths[launch]:
                wave += 1
            if wave == len(room):
                room.append(device.veus)
                waves.members.append([])
            room[wave] -= waves.widths[launch]
            wave_of[launch] = wave
            waves.members[wave].append(launch)
    return waves


def _widths(layer: list[int], launches: list[Launch], device: VDevice) -> dict[int, int]:
    """vEUs for each launch of a layer: all it can use, or a share if that ends the layer sooner."""
    full = {n: min(launches[n].tasks, device.veus) for n in layer}
    if sum(full.values()) <= device.veus or len(layer) > device.veus:
        return full
    shared = _shared_widths(layer, launches, device.veus)
    together = max(duration(launches[n], shared[n]) for n in layer)
    return shared if together <= _shelf_time(layer, full, launches, device) else full


def _shelf_time(
    layer: list[int], widths: dict[int, int], launches: list[Launch], device: VDevice
) -> float:
    """Time of a layer that is split into shelves of launches side by side, waits between included."""
    total, room, longest = 0.0, device.veus, 0.0
    for n in layer:
        if widths[n] > room:
            total, room, longest = total + longest + device.wait_ns, device.veus, 0.0
        room -= widths[n]
        longest = max(longest, duration(launches[n], widths[n]))
    return total + longest


def _shared_widths(layer: list[int], launches: list[Launch], veus: int) -> dict[int, int]:
    """The split of the device over a layer, at least one vEU each, that ends soonest.

    Bisection on the number of ns: within T, a launch needs ceil(tasks / floor(T / cost)) vEUs.
    """

    def needed(limit: float) -> dict[int, int]:
        return {
            n: math.ceil(launches[n].tasks / max(1, int(limit / max(launches[n].cost_ns, 1e-9))))
            for n in layer
        }

    low = max(launches[n].cost_ns for n in layer)
    high = max(duration(launches[n], 1) for n in layer)
    for _ in range(40):
        middle = (low + high) / 2
        if sum(needed(middle).values()) <= veus:
            high = middle
        else:
            low = middle
    return {n: min(width, veus) for n, width in needed(high * (1 + 1e-9)).items()}
