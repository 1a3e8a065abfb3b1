"""The order that each mode keeps between the rTasks of a schedule (docs/schedule.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.model import Schedule
from irkit.schedule.modes import Mode
from irkit.schedule.wellformed import describe, reject


def is_implied(schedule: Schedule, mode: Mode, proved: Sequence[Mode]) -> bool:
    """Whether `mode` keeps, of two rTasks, every order that one of the proved modes keeps.

    If all waits point back, list order is one of the orders of a persistent run; if the list goes from
    wave to wave, mode per-wave keeps what per-op does, and the order of each vEU's rTasks besides.
    """
    appends = schedule.appends
    if mode is Mode.SERIAL:
        return all(w < n for n, append in enumerate(appends) for w in append.waits)
    in_order = all(a.wave <= b.wave for a, b in pairwise(appends))
    return mode is Mode.PER_WAVE and Mode.PER_OP in proved and in_order


def order_of(schedule: Schedule, mode: Mode) -> HappensBefore:
    """What certainly happens before what in `mode`. Raises ScheduleError where a schedule deadlocks
    (rule 'deadlock') or cannot be cut into waves (rule 'wave')."""
    if mode is Mode.PERSISTENT:
        return HappensBefore(schedule)
    if mode is Mode.PER_WAVE:
        _check_waves(schedule)
        return HappensBefore(schedule, [append.wave for append in schedule.appends])
    if mode is Mode.PER_OP:
        return HappensBefore(schedule, _runs_of_one_wave(schedule), by_lane=False)
    return HappensBefore(schedule, range(len(schedule.appends)), by_lane=False)


def _check_waves(schedule: Schedule) -> None:
    """A wave is one stretch of each vEU's list."""
    latest: dict[int, int] = {}
    for number, append in enumerate(schedule.appends):
        for veu in range(append.first_veu, append.first_veu + append.veus):
            before = latest.get(veu)
            if before is not None and schedule.appends[before].wave > append.wave:
                reject(
                    "wave",
                    f"{describe(schedule, number)} of wave {append.wave} comes after "
                    f"{describe(schedule, before)} of wave {schedule.appends[before].wave} on vEU {veu}",
                )
            latest[veu] = number


def _runs_of_one_wave(schedule: Schedule) -> list[int]:
    """Neighbours of one wave may run side by side where they share no vEU; each run of them waits for
    the one before."""
    waves = [append.wave for append in schedule.appends]
    changes = (int(a != b) for a, b in pairwise(waves))
    return list(accumulate(changes, initial=0)) if waves else []
