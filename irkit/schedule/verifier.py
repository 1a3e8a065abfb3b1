"""The proof that a schedule means its program, whatever the vEUs' relative speeds.

It accepts only if all of these hold; each failure is a ScheduleError that names the rule:

| rule | what it says |
|---|---|
| launch, placement, wait, view, access | numbers name things that exist, boxes lie in their buffers |
| once | every launch is appended exactly once |
| device | all vEUs are resident at once, in blocks that a walker can run in |
| deadlock | abstract execution reaches the end |
| constant | nothing writes to inputs and constants |
| alias | no launch writes what it reads, but for what its rKernel updates in place, or a byte twice |
| carried | operands that say themselves that they are there come whole from one earlier append |
| race | conflicting rTasks are ordered, in the order in which the program lists their launches |
| unwritten | what is read from arena, rows, outputs was written before; results are whole |
| arena | offsets are planned, aligned, inside; buffers in use together share no bytes |
| shared | scratch, residents and the walker's tables fit the vEU's shared memory and do not overlap |
| wave | in mode per-wave, every vEU's appends are listed wave by wave |
| meaning | the schedule computes its function (`translation.py`) |

'race' and 'arena' depend on the mode: `orders.py` has the order that each mode keeps. A schedule that is
wrong in mode persistent is wrong; any other mode may be refused alone. `coverage.py` and
`memory_rules.py` hold 'unwritten', 'arena' and 'shared'.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from irkit.errors import ScheduleError
from irkit.schedule.box_overlap import Indices, Mask
from irkit.schedule.carried import Carriage
from irkit.schedule.coverage import check_covered
from irkit.schedule.dependences import one_lane
from irkit.schedule.footprint import Footprints, Touch, overlap
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.meaning import Function
from irkit.schedule.memory_rules import check_arena, check_places, check_shared
from irkit.schedule.model import Schedule
from irkit.schedule.modes import Mode
from irkit.schedule.orders import is_implied, order_of
from irkit.schedule.own_results import check_own_results
from irkit.schedule.translation import check_translation
from irkit.schedule.wellformed import check_appends, check_device, check_once, describe, reject


@dataclass
class Proof:
    """`modes` are those that the proof covers; `refused` says of each other one why it is not."""

    modes: list[Mode] = field(default_factory=list[Mode])
    refused: dict[Mode, str] = field(default_factory=dict[Mode, str])


def prove(schedule: Schedule, function: Function) -> Proof:
    """Prove that `schedule` computes `function`, or raise ScheduleError."""
    proof = verify_schedule(schedule)
    check_translation(schedule, function)
    return proof


def verify_schedule(schedule: Schedule) -> Proof:
    """Prove that every run of `schedule` is as its launches one after another, or raise ScheduleError
    naming rule, appends, rTasks, vEUs and buffer."""
    check_appends(schedule)
    check_once(schedule)
    check_device(schedule)
    feet = Footprints(schedule.buffers, schedule.launches)
    check_read_only(schedule, feet)
    check_own_results(schedule, feet)
    check_places(schedule, feet)
    carriage = Carriage(schedule, feet)
    check_carried(schedule, carriage)
    _check_mode(schedule, feet, Mode.PERSISTENT, carriage)
    check_covered(schedule, feet)
    check_shared(schedule, feet)
    return _modes(schedule, feet)


def _modes(schedule: Schedule, feet: Footprints) -> Proof:
    """Which modes are safe beside persistent, which is proved."""
    proof = Proof([Mode.PERSISTENT])
    for mode in (Mode.SERIAL, Mode.PER_OP, Mode.PER_WAVE):
        try:
            if not is_implied(schedule, mode, proof.modes):
                _check_mode(schedule, feet, mode)
            proof.modes.append(mode)
        except ScheduleError as error:
            proof.refused[mode] = str(error)
    proof.modes.sort(key=list(Mode).index)
    return proof


def _check_mode(
    schedule: Schedule, feet: Footprints, mode: Mode, carried: Container[tuple[Touch, Touch]] = ()
) -> None:
    """The rules that depend on who runs before whom."""
    order = order_of(schedule, mode)
    check_races(schedule, feet, order, carried)
    check_arena(schedule, feet, order)


def check_read_only(schedule: Schedule, feet: Footprints) -> None:
    """Rule 'constant': inputs and constants are never written."""
    for touches in feet.touches.values():
        for touch in touches:
            space = schedule.buffers[touch.root].space
            if touch.writes and space in ("input", "constant"):
                launch = schedule.launches[touch.launch].name
                buffer = schedule.buffers[touch.buffer].name
                reject("constant", f"'{launch}' writes to '{buffer}', which is {space} memory")


def check_carried(schedule: Schedule, carriage: Carriage) -> None:
    """Rule 'carried': operands whose elements say that they are there come whole from one earlier append, and
    no append waits for a later one, so that the order of the list is one that a run can keep."""
    for number, append in enumerate(schedule.appends):
        for operand in append.carried:
            reason = carriage.source(number, operand)
            if isinstance(reason, str):
                reject("carried", f"{describe(schedule, number)} operand {operand}: {reason}")
        if len(set(append.carried)) != len(append.carried):
            reject("carried", f"{describe(schedule, number)} carries an operand twice")
    if any(append.carried for append in schedule.appends):
        for number, append in enumerate(schedule.appends):
            if any(wait >= number for wait in append.waits):
                reject("carried", f"{describe(schedule, number)} waits for a later append")


def check_races(
    schedule: Schedule,
    feet: Footprints,
    order: HappensBefore,
    carried: Container[tuple[Touch, Touch]] = (),
) -> None:
    """Rule 'race': of two conflicting rTasks, the one earlier in the program happens before. What is
    `carried` is read once it is there.

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
        if (a, b) in carried:
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
        if not order.by_lane:
            return alone
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
