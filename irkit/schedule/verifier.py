"""The proof that a schedule means its program, whatever the vEUs' relative speeds.

It accepts only if all of these hold; each failure is a ScheduleError that names the rule:

| rule | what it says |
|---|---|
| launch, placement, wait, view, access | numbers name things that exist, boxes lie in their buffers |
| once | every launch is appended exactly once |
| deadlock | abstract execution reaches the end |
| constant | nothing writes to inputs and constants |
| race | conflicting rTasks are ordered, in the order in which the program lists their launches |
| unwritten | what is read from arena, rows, outputs was written before; outputs are whole |
| arena | offsets are planned, aligned, inside; buffers in use together share no bytes |
| shared | scratch and residents fit the vEU's shared memory and do not overlap |

`coverage.py` and `memory_rules.py` hold the last three.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from irkit.schedule.coverage import check_covered
from irkit.schedule.dependences import one_lane
from irkit.schedule.footprint import Footprints, Touch, overlap
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.memory_rules import check_arena, check_shared
from irkit.schedule.model import Schedule
from irkit.schedule.overlap import Indices, Mask
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
        i, j = overlap(a, b)
        ordered = _ordered(order, (a, b), (first, second), (i, j))
        if not ordered.all():
            at = int(np.argmin(ordered))
            _report_race(schedule, order, (a, b), (first, second), (int(i[at]), int(j[at])))


def _ordered(
    order: HappensBefore,
    touches: tuple[Touch, Touch],
    appends: tuple[int, int],
    pairs: tuple[Indices, Indices],
) -> Mask:
    """For pairs of groups of rTasks, whether all of the first happen before all of the second.

    rTasks of one append never wait for each other, so they are ordered only on one lane; and an rTask
    does not conflict with itself.
    """
    (a, b), (i, j) = touches, pairs
    if appends[0] == appends[1]:
        alone = np.minimum(a.groups.first[i], b.groups.first[j]) == np.maximum(
            a.groups.last[i], b.groups.last[j]
        )
        return alone | one_lane(a, b, order.schedule.appends[appends[0]].veus)
    ends = order.group_ends(appends[0], a.groups)
    starts = order.group_starts(appends[1], b.groups)
    ordered = np.ones(len(i), bool)
    for veu in np.flatnonzero(ends.any(axis=0)):
        ordered &= starts[j, veu] >= ends[i, veu]
    return ordered


def _report_race(
    schedule: Schedule,
    order: HappensBefore,
    touches: tuple[Touch, Touch],
    appends: tuple[int, int],
    groups: tuple[int, int],
) -> NoReturn:
    """Name two rTasks of these groups that are not ordered."""
    (a, b), (first, second) = touches, appends
    s, t = next(
        (s, t)
        for s in np.flatnonzero(a.groups.of == groups[0]).tolist()
        for t in np.flatnonzero(b.groups.of == groups[1]).tolist()
        if not order.before(first, s, second, t)
        and (first != second or (s != t and not order.before(second, t, first, s)))
    )
    kind = {(True, False): "read after write", (False, True): "write after read"}
    reject(
        "race",
        f"{kind.get((a.writes, b.writes), 'write after write')} on "
        f"'{schedule.buffers[a.buffer].name}': {describe(schedule, first, s)} does not happen "
        f"before {describe(schedule, second, t)}",
    )
