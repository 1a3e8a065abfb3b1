"""Launches that read the same constants are run alike, so that these can stay where they are."""

from __future__ import annotations

from collections.abc import Iterator

from irkit.schedule.allotments import Allotment, Speedup
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Launch, VDevice
from irkit.schedule.waves import duration

WORTH = 0.1
"""Constants are worth keeping that take at least this share of a launch's time to read."""


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
        first = min(group, key=lambda n: allotments[n].veus)
        least = allotments[first]
        tasks = launches[first].options[least.option].tasks
        if not _could_stay(_part(feet, launches, first, least), least, device):
            continue
        for n in group:
            step = _alike(launches[n], found[n], least.veus, tasks)
            key = step.option, step.veus, step.time
            result[n] = known.setdefault(key, Speedup([step]))
    return result


def _part(feet: Footprints, launches: list[Launch], number: int, least: Allotment) -> float:
    """Bytes of the constants of a launch that a vEU reads: those of an rTask, times the rTasks in turn there
    unless all read the same."""
    launch = launches[number]
    boxes = launch.options[least.option].boxes()
    total = 0.0
    for operand, access in feet.constant_reads(number):
        of_all = boxes[operand]
        one = int((of_all[:, :, 1] - of_all[:, :, 0]).prod(axis=1).max(initial=0))
        turns = 1 if (of_all == of_all[:1]).all() else -(-len(of_all) // least.veus)
        total += one * turns * feet.buffers[access.buffer].itemsize
    return total


def _could_stay(part: float, least: Allotment, device: VDevice) -> bool:
    """Whether each vEU has room for its part of the constants, and reading it takes a while."""
    room = device.shared_bytes or float("inf")
    return part <= room and part / device.bytes_per_ns >= WORTH * least.time


def _alike(launch: Launch, speedup: Speedup, veus: int, tasks: int) -> Allotment:
    """In so many rTasks on so many vEUs; as fast as these allow where it has no such option."""
    for number, option in enumerate(launch.options):
        if option.tasks == tasks:
            time = duration(option, veus)
            return Allotment(number, veus, time)
    return Allotment(speedup.on(veus).option, veus, speedup.on(veus).time)


def _groups(feet: Footprints, launches: list[Launch]) -> Iterator[list[int]]:
    """Launches that read the same constant, the largest of each."""
    groups: dict[int, list[int]] = {}
    for n, launch in enumerate(launches):
        sizes = {a.buffer: feet.buffers[a.buffer].nbytes for _, a in feet.constant_reads(n)}
        if sizes and launch.options:
            largest = max(sizes, key=lambda buffer: sizes[buffer])
            groups.setdefault(largest, []).append(n)
    return (group for group in groups.values() if len(group) > 1)
