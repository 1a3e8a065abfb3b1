"""The partial order of a schedule, by vector clocks.

A vEU's clock counts the rTasks it has finished. The start clock of an rTask says, for every vEU, how
many of that vEU's rTasks have certainly finished when it starts; so rTask x, the q-th of vEU u,
happens before rTask y exactly when y's start clock has more than q at u.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Groups
from irkit.schedule.model import Schedule
from irkit.schedule.wellformed import check_appends, describe, reject

Clocks = NDArray[np.int32]


class HappensBefore:
    """Which rTask certainly finishes before which other one starts.

    Building it executes the schedule abstractly; a schedule that cannot reach its end raises
    ScheduleError (rule 'deadlock') saying which append on which vEU waits for which.

    A lane is one vEU's part of an append: its rTasks lane, lane + veus, ... in this order. Clocks are
    kept per lane, since the rTasks of one lane differ only in their own vEU's entry.
    """

    def __init__(
        self, schedule: Schedule, groups: Sequence[int] | None = None, by_lane: bool = True
    ) -> None:
        """`groups` has a number per append: then no vEU begins a group before all have ended the
        one before it, and waits are not looked at. `by_lane` says that the rTasks of a lane run in
        order; else those of one append may run side by side.
        """
        check_appends(schedule)
        self.schedule, self.by_lane = schedule, by_lane
        self.veus = schedule.device.veus
        tasks = [schedule.launches[append.launch].tasks for append in schedule.appends]
        widths = [min(n, a.veus) for n, a in zip(tasks, schedule.appends, strict=True)]
        self._tasks = tasks
        self._lanes: list[Clocks] = [np.zeros((w, self.veus), np.int32) for w in widths]
        self._ends: list[Clocks] = [np.zeros(self.veus, np.int32) for _ in widths]
        self._clock: Clocks = np.zeros((self.veus, self.veus), np.int32)
        if groups is not None:
            self._run_in_groups(groups)
        elif all(w < a for a, append in enumerate(schedule.appends) for w in append.waits):
            self._run_in_order()
        else:
            self._run_abstractly()

    # -- queries

    def lanes(self, append: int) -> Clocks:
        """Start clocks [lanes, veus] of the first rTask of each lane."""
        return self._lanes[append]

    def ends(self, append: int) -> Clocks:
        """Clock [veus] that a wait for `append` brings: everything before its last signal."""
        return self._ends[append]

    def positions(self, append: int) -> NDArray[np.int64]:
        """For each rTask, how many rTasks its vEU runs before it: [tasks]."""
        entry = self.schedule.appends[append]
        task = np.arange(self._tasks[append])
        lane = task % entry.veus
        return self._lanes[append][lane, entry.first_veu + lane] + task // entry.veus

    def starts(self, append: int) -> Clocks:
        """Start clocks of every rTask of `append`: [tasks, veus], int32."""
        entry = self.schedule.appends[append]
        task = np.arange(self._tasks[append])
        lane = task % entry.veus
        clocks = self._lanes[append][lane]
        if self.by_lane:
            clocks[task, entry.first_veu + lane] += (task // entry.veus).astype(np.int32)
        return clocks

    def first_start(self, append: int, active: NDArray[np.bool_] | None = None) -> Clocks:
        """What every (active) rTask of `append` knows to be finished when it starts: [veus]."""
        if active is None or bool(active.all()):
            return self._lanes[append].min(axis=0)
        return self.starts(append)[active].min(axis=0, initial=np.iinfo(np.int32).max)

    def last_end(self, append: int, active: NDArray[np.bool_] | None = None) -> Clocks:
        """Per vEU, the count it reaches with the last (active) rTask of `append`, else 0: [veus]."""
        entry = self.schedule.appends[append]
        task = np.arange(self._tasks[append])
        done = np.zeros(self.veus, np.int32)
        counts = self.positions(append) + 1
        if active is not None:
            task, counts = task[active], counts[active]
        np.maximum.at(done, entry.first_veu + task % entry.veus, counts.astype(np.int32))
        return done

    def group_starts(self, append: int, groups: Groups) -> Clocks:
        """`first_start` of each group of rTasks: [groups, veus]."""
        result = np.full((len(groups.first), self.veus), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(result, groups.of, self.starts(append))
        return result

    def group_ends(self, append: int, groups: Groups) -> Clocks:
        """`last_end` of each group of rTasks: [groups, veus]."""
        entry = self.schedule.appends[append]
        veu = entry.first_veu + np.arange(self._tasks[append]) % entry.veus
        result = np.zeros((len(groups.first), self.veus), np.int32)
        np.maximum.at(result, (groups.of, veu), (self.positions(append) + 1).astype(np.int32))
        return result

    def before(self, append_a: int, task_i: int, append_b: int, task_j: int) -> bool:
        """Whether rTask `task_i` of `append_a` finishes before rTask `task_j` of `append_b` starts."""
        a, b = self.schedule.appends[append_a], self.schedule.appends[append_b]
        veu = a.veu_of(task_i)
        position = self._lanes[append_a][task_i % a.veus, veu] + task_i // a.veus
        clock = self._lanes[append_b][task_j % b.veus, veu]
        if b.veu_of(task_j) == veu and self.by_lane:
            clock = clock + task_j // b.veus
        return bool(clock > position)

    # -- abstract execution

    def _counts(self, append: int) -> Clocks:
        """How many rTasks each lane of `append` runs: [lanes]."""
        lane = np.arange(len(self._lanes[append]))
        veus = self.schedule.appends[append].veus
        return ((self._tasks[append] - lane + veus - 1) // veus).astype(np.int32)

    def _awaited(self, append: int) -> Clocks:
        """The join of the clocks that the waits of `append` bring: [veus]."""
        join = np.zeros(self.veus, np.int32)
        for wait in self.schedule.appends[append].waits:
            np.maximum(join, self._ends[wait], out=join)
        return join

    def _run_in_order(self) -> None:
        """All waits name earlier appends, so list order is a legal execution."""
        for number in range(len(self.schedule.appends)):
            self._run_append(number, self._awaited(number))

    def _run_append(self, number: int, awaited: Clocks) -> None:
        first = self.schedule.appends[number].first_veu
        lane = np.arange(len(self._lanes[number]))
        block = self._clock[first : first + len(lane)]
        np.maximum(block, awaited, out=block)
        self._lanes[number][:] = block
        block[lane, first + lane] += self._counts(number)
        self._ends[number] = block.max(axis=0)

    def _run_in_groups(self, groups: Sequence[int]) -> None:
        """Group by group, with a barrier behind each."""
        members: dict[int, list[int]] = {}
        for number, group in enumerate(groups):
            members.setdefault(group, []).append(number)
        barrier = np.zeros(self.veus, np.int32)
        for group in sorted(members):
            for number in members[group]:
                self._run_append(number, barrier)
            barrier = self._clock.max(axis=0)

    def _run_abstractly(self) -> None:
        """Each vEU takes its next lane when what it waits for has signalled, until none can."""
        queues: list[deque[int]] = [deque() for _ in range(self.veus)]
        for number, entry in enumerate(self.schedule.appends):
            for lane in range(len(self._lanes[number])):
                queues[entry.first_veu + lane].append(number)
        left = [len(lanes) for lanes in self._lanes]
        moved = True
        while moved:
            moved = False
            for veu, queue in enumerate(queues):
                while queue and not self._blockers(queue[0], left):
                    self._run_lane(queue.popleft(), veu, left)
                    moved = True
        self._report_deadlock(queues, left)

    def _blockers(self, append: int, left: list[int]) -> list[int]:
        return [wait for wait in self.schedule.appends[append].waits if left[wait]]

    def _run_lane(self, append: int, veu: int, left: list[int]) -> None:
        lane = veu - self.schedule.appends[append].first_veu
        clock = self._clock[veu]
        np.maximum(clock, self._awaited(append), out=clock)
        self._lanes[append][lane] = clock
        clock[veu] += self._counts(append)[lane]
        np.maximum(self._ends[append], clock, out=self._ends[append])
        left[append] -= 1

    def _report_deadlock(self, queues: list[deque[int]], left: list[int]) -> None:
        stuck = [
            f"{describe(self.schedule, queue[0])} on vEU {veu} waits for "
            + ", ".join(describe(self.schedule, w) for w in self._blockers(queue[0], left))
            for veu, queue in enumerate(queues)
            if queue
        ]
        if stuck:
            reject("deadlock", "; ".join(stuck[:4]) + ("; ..." if len(stuck) > 4 else ""))
