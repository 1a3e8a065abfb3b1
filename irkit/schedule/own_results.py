"""Rule 'alias': the rTasks of a launch do not see its results.

Executed as one step, a launch reads all its operands and then writes its results, and so the proof takes it.
Its rTasks run in any order, and each in the order of its rKernel. Both are the same if the launch writes
nothing that it reads, but for operands that its rKernel can update in place, and no byte twice.
"""

from __future__ import annotations

import numpy as np

from irkit.schedule.footprint import Footprints, Touch, overlap
from irkit.schedule.model import Schedule
from irkit.schedule.wellformed import reject


def check_own_results(schedule: Schedule, feet: Footprints) -> None:
    """No launch writes what it reads, except in place, nor two results to the same bytes."""
    for a, b in feet.conflicts:
        if a.launch != b.launch or (a.writes and a.operand == b.operand and b.writes):
            continue
        read, write = (b, a) if a.writes else (a, b)
        if (reason := _why_not(schedule, feet, read, write)) is not None:
            name = schedule.buffers[write.buffer].name
            reject("alias", f"'{schedule.launches[a.launch].name}' writes to '{name}' {reason}")


def _why_not(schedule: Schedule, feet: Footprints, read: Touch, write: Touch) -> str | None:
    """What is wrong with two touches of one launch, of which the second writes; None if nothing is."""
    first, second = overlap(read, write)
    if not len(first):
        return None
    if read.writes:
        results = sorted((read.operand, write.operand))
        return f"as results {results[0]} and {results[1]} at once"
    if (read.operand, write.operand) not in schedule.launches[read.launch].in_place:
        return f"what it reads as operand {read.operand}"
    one, other = schedule.buffers[read.buffer], schedule.buffers[write.buffer]
    places = feet.places[read.buffer], feet.places[write.buffer]
    if (places[0], one.shape, one.element) != (places[1], other.shape, other.element):
        return f"and reads it as operand {read.operand} at other places"
    # All rTasks of both groups: one and the same.
    lowest = np.minimum(read.groups.first[first], write.groups.first[second])
    highest = np.maximum(read.groups.last[first], write.groups.last[second])
    if (lowest != highest).any():
        at = int(np.argmax(lowest != highest))
        return f"in rTask {highest[at]} what rTask {lowest[at]} touches of operand {read.operand}"
    return None
