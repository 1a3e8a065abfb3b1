"""The waits that a placed program needs, and no others that these imply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irkit.schedule.carried import Carriage
from irkit.schedule.footprint import Footprints, Touch, overlap, overlaps
from irkit.schedule.happens_before import Clocks, HappensBefore
from irkit.schedule.model import Append, Schedule
from irkit.schedule.wellformed import check_appends, check_once, describe, reject

Pairs = dict[int, list[tuple[Touch, Touch]]]


def derive_waits(schedule: Schedule, feet: Footprints | None = None) -> Schedule:
    """The same appends with waits derived anew from the accesses; old waits are dropped.

    For each append, the earlier appends with a conflicting rTask that neither program order on one vEU
    nor the other waits order before it; then waits implied by the remaining ones are removed. An operand
    that is carried is not waited for.

    Raises ScheduleError (rule 'order') when appends contradict program order: launches that conflict
    must be appended in the order in which the program lists them.
    """
    check_appends(schedule)
    check_once(schedule)
    feet = feet or Footprints(schedule.buffers, schedule.launches)
    conflicts = _conflicts_by_append(schedule, feet)
    clocks = _Clocks(schedule)
    appends: list[Append] = []
    for number, append in enumerate(schedule.appends):
        waits = clocks.waits_for(number, conflicts[number])
        clocks.run(number, waits)
        appends.append(replace(append, waits=tuple(sorted(waits))))
    return replace(schedule, appends=appends, notes=dict(schedule.notes))


def wait_in_line(schedule: Schedule) -> Schedule:
    """The same appends, each of which waits for all of the one before; old waits are dropped.

    Then no vEU runs ahead of another, and what is in use at once is what it is in the order of the appends.
    Raises ScheduleError where that contradicts program order, as `derive_waits` does.
    """
    made = derive_waits(schedule)
    appends: list[Append] = []
    for number, append in enumerate(made.appends):
        one_veu = number and append.veus == 1 == made.appends[number - 1].veus
        behind = one_veu and append.first_veu == made.appends[number - 1].first_veu
        waits = () if number == 0 or behind else (number - 1,)
        appends.append(replace(append, waits=waits))
    return replace(made, appends=appends)


def _conflicts_by_append(schedule: Schedule, feet: Footprints) -> list[Pairs]:
    """For each append, the earlier appends that it may conflict with, and through which touches."""
    append_of = {append.launch: number for number, append in enumerate(schedule.appends)}
    result: list[Pairs] = [{} for _ in schedule.appends]
    carried = Carriage(schedule, feet)
    for a, b in feet.conflicts:
        first, second = append_of[a.launch], append_of[b.launch]
        if (a, b) in carried:
            continue
        if first < second:
            result[second].setdefault(first, []).append((a, b))
        elif first > second and overlaps(a, b):
            reject(
                "order",
                f"{describe(schedule, first)} must come before {describe(schedule, second)}: "
                f"both touch '{feet.buffers[a.buffer].name}'",
            )
    return result


class _Clocks:
    """Vector clocks grown append by append, as waits are decided; see `happens_before`."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._order = HappensBefore(
            replace(schedule, appends=[replace(a, waits=()) for a in schedule.appends])
        )  # own-vEU positions do not depend on waits
        veus = schedule.device.veus
        self._clock: Clocks = np.zeros((veus, veus), np.int32)
        self._ends: list[Clocks] = []

    def waits_for(self, append: int, conflicts: Pairs) -> list[int]:
        """The waits of `append`: later candidates first, since they bring the most with them."""
        known = self._lanes(append)
        needs: dict[int, Clocks] = {}
        waits: list[int] = []
        for source in sorted(conflicts, reverse=True):
            if (known >= self._order.last_end(source)).all():
                continue
            need = self._need(source, append, conflicts[source])
            if (known >= need).all():
                continue
            needs[source] = need
            if not self._covered(known, waits, [need]):
                waits.append(source)
        for wait in list(waits):
            others = [w for w in waits if w != wait]
            if self._covered(known, others, list(needs.values())):
                waits = others
        return waits

    def run(self, append: int, waits: list[int]) -> None:
        """Let `append` run after `waits`."""
        lanes = self._lanes(append)
        lanes[:] = self._join(lanes, waits)
        lane = np.arange(len(lanes))
        veu = self._schedule.appends[append].first_veu + lane
        lanes[lane, veu] = self._order.last_end(append)[veu]
        self._ends.append(lanes.max(axis=0))

    def _lanes(self, append: int) -> Clocks:
        """The present clocks of the vEUs of an append, as a view: [lanes, veus]."""
        first = self._schedule.appends[append].first_veu
        return self._clock[first : first + len(self._order.lanes(append))]

    def _join(self, known: Clocks, waits: list[int]) -> Clocks:
        for wait in waits:
            known = np.maximum(known, self._ends[wait])
        return known

    def _covered(self, known: Clocks, waits: list[int], needs: list[Clocks]) -> bool:
        have = self._join(known, waits)
        return all(bool((have >= need).all()) for need in needs)

    def _need(self, source: int, append: int, pairs: list[tuple[Touch, Touch]]) -> Clocks:
        """What each lane of `append` must know of each vEU before it starts: [lanes, veus]."""
        need = np.zeros_like(self._lanes(append))
        lane = np.arange(self._schedule.launches[self._schedule.appends[append].launch].tasks)
        lane %= self._schedule.appends[append].veus
        for a, b in pairs:
            first, second = overlap(a, b)
            done = self._order.group_ends(source, a.groups)
            by_group = np.zeros((len(b.groups.first), need.shape[1]), np.int32)
            np.maximum.at(by_group, second, done[first])
            np.maximum.at(need, lane, by_group[b.groups.of])
        return need
