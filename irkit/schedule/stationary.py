"""Launches that read the same constants are run alike, so that these can stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irkit.schedule.allotments import Allotment, Speedup
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Launch, VDevice
from irkit.schedule.waves import duration

WORTH = 0.1
"""Constants are worth keeping that take at least this share of a launch's time to read."""


@dataclass(frozen=True)
class _Group:
    """Launches that read the same constant, the largest of each, and the bytes of all their constants."""

    launches: list[int]
    nbytes: int


def keep_still(
    feet: Footprints,
    launches: list[Launch],
    found: list[Speedup],
    allotments: list[Allotment],
    device: VDevice,
) -> list[Speedup]:
    """`found`, with one allotment left to launches that read the same constants again and again.

    It is the one of the most crowded layer, that of the fewest vEUs, since there all must find room. Launches
    without a choice, and those of which no vEU could keep its part, are left as they are.
    """
    result = list(found)
    known: dict[tuple[int, int, float], Speedup] = {}
    for group in _groups(feet, launches):
        first = min(group.launches, key=lambda n: allotments[n].veus)
        least = allotments[first]
        if not _could_stay(group, least, device):
            continue
        tasks = launches[first].options[least.option].tasks
        for n in group.launches:
            step = _alike(launches[n], found[n], least.veus, tasks)
            key = step.option, step.veus, step.time
            result[n] = known.setdefault(key, Speedup([step]))
    return result


def _could_stay(group: _Group, least: Allotment, device: VDevice) -> bool:
    """Whether each vEU has room for its part of the constants, and reading it takes a while."""
    part = group.nbytes / least.veus
    room = device.shared_bytes or float("inf")
    return part <= room and part / device.bytes_per_ns >= WORTH * least.time


def _alike(launch: Launch, speedup: Speedup, veus: int, tasks: int) -> Allotment:
    """In so many rTasks on so many vEUs; as fast as these allow where it has no such option."""
    for number, option in enumerate(launch.options):
        if option.tasks == tasks:
            time = duration(option, veus)
            return Allotment(number, veus, time)
    return Allotment(speedup.on(veus).option, veus, speedup.on(veus).time)


def _groups(feet: Footprints, launches: list[Launch]) -> Iterator[_Group]:
    groups: dict[int, _Group] = {}
    for n, launch in enumerate(launches):
        sizes = {a.buffer: feet.buffers[a.buffer].nbytes for _, a in feet.constant_reads(n)}
        if sizes and launch.options:
            largest = max(sizes, key=lambda buffer: sizes[buffer])
            groups.setdefault(largest, _Group([], sum(sizes.values()))).launches.append(n)
    return (group for group in groups.values() if len(group.launches) > 1)
