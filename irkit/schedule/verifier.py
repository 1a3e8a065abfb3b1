"""The proof that a schedule means its program, whatever the vEUs' relative speeds.

It accepts only if all of these hold; each failure is a ScheduleError that names the rule:

| rule | what it says |
|---|---|
| launch, placement, wait, view, access | numbers name things that exist, boxes lie in their buffers |
| once | every launch is appended exactly once |
| deadlock | abstract execution reaches the end |
| constant | nothing writes to inputs and constants |
| race | conflicting rTasks are ordered, in the order in which the program lists their launches |
| unwritten | what is read from the arena, rows or outputs was written before |
| arena | offsets are planned, aligned, inside; buffers in use together share no bytes |
| shared | scratch and residents fit the vEU's shared memory and do not overlap |

`coverage.py` and `memory_rules.py` hold the last three.
"""

from __future__ import annotations

import numpy as np

from irkit.schedule.coverage import check_covered
from irkit.schedule.footprint import Footprints, Mask, Touch, overlap
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.memory_rules import check_arena, check_shared
from irkit.schedule.model import Schedule
from irkit.schedule.wellformed import check_appends, check_once, describe, reject


def verify_schedule(schedule: Schedule) -> None:
    """Prove `schedule`, or raise ScheduleError naming rule, appends, rTasks, vEUs and buffer."""
    check_appends(schedule)
    check_once(schedule)
    feet = Footprints(schedule.buffers, schedule.launches)
    order = HappensBefore(schedule)
    check_read_only(schedule, feet)
    check_races(schedule, feet, order)
    check_covered(schedule, feet)
    check_arena(schedule, feet, order)
    check_shared(schedule, feet)


def check_read_only(schedule: Schedule, feet: Footprints) -> None:
    """Rule 'constant': inputs and constants are never written."""
    for touches in feet.touches.values():
        for touch in touches:
            space = schedule.buffers[touch.root].space
            if touch.writes and space in ("input", "constant"):
                launch = schedule.launches[touch.launch].name
                buffer = schedule.buffers[touch.buffer].name
                reject("constant", f"'{launch}' writes to '{buffer}', which is {space} memory")


def check_races(schedule: Schedule, feet: Footprints, order: HappensBefore) -> None:
    """Rule 'race': of two conflicting rTasks, the one earlier in the program happens before.

    Whole appends are compared first; only pairs not ordered as a whole are looked at by box.
    """
    append_of = {append.launch: number for number, append in enumerate(schedule.appends)}
    count = len(schedule.appends)
    starts = np.stack([order.first_start(a) for a in range(count)]) if count else np.empty(0)
    ends = np.stack([order.last_end(a) for a in range(count)]) if count else np.empty(0)
    for a, b in feet.conflicts:
        first, second = append_of[a.launch], append_of[b.launch]
        if first != second and bool((starts[second] >= ends[first]).all()):
            continue
        races = overlap(a, b) & ~_ordered(order, first, second)
        if races.any():
            _report_race(schedule, (a, b), (first, second), races)


def _ordered(order: HappensBefore, first: int, second: int) -> Mask:
    """Matrix [tasks, tasks]: rTask of `first` before that of `second`; inside one launch, either."""
    before = order.task_order(first, second)
    if first != second:
        return before
    ordered = np.triu(before, 1)
    return ordered | ordered.T | np.eye(len(before), dtype=bool)


def _report_race(
    schedule: Schedule, touches: tuple[Touch, Touch], appends: tuple[int, int], races: Mask
) -> None:
    a, b = touches
    i, j = (int(index) for index in np.argwhere(races)[0])
    kind = {(True, False): "read after write", (False, True): "write after read"}
    reject(
        "race",
        f"{kind.get((a.writes, b.writes), 'write after write')} on "
        f"'{schedule.buffers[a.buffer].name}': {describe(schedule, appends[0], i)} does not happen "
        f"before {describe(schedule, appends[1], j)}",
    )
