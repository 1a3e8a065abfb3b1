"""A schedule's meaning as it runs: rTasks in any order that a mode's queues and barriers allow.

This is the judge of the schedule verifier, and shares nothing with it but the data model
`irkit.schedule.model` and the names of the modes. The rules are those of the walkers and launchers:

| mode | a queue is | its head waits for |
|---|---|---|
| persistent | a vEU's list | all rTasks of the appends that it names, or that it has carried operands of |
| per-wave | a vEU's list, wave by wave | all earlier waves |
| per-op | one rTask | earlier appends, but for neighbours of its wave on other vEUs |
| serial | the whole list | nothing |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy

import numpy as np

from irkit.errors import ScheduleError
from irkit.schedule.model import Append, Schedule
from irkit.schedule.modes import Mode

Step = tuple[int, int]
"""(append, rTask)"""


class Machine:
    """The state of a run: queues of rTasks still to do, per append how many have not signalled.

    Raises ScheduleError where a schedule cannot be run in `mode`.
    """

    def __init__(self, schedule: Schedule, mode: Mode = Mode.PERSISTENT) -> None:
        self._open = [schedule.launches[append.launch].tasks for append in schedule.appends]
        steps = [(n, task) for n, tasks in enumerate(self._open) for task in range(tasks)]
        self._queues = [deque(queue) for queue in _queues(schedule, mode, steps)]
        self._before = [
            [*_before(schedule.appends, number, mode), *_carried_from(schedule, number, mode)]
            for number in range(len(self._open))
        ]

    def copy(self) -> Machine:
        """The same state, to go on from in another order."""
        made = copy(self)
        made._open, made._queues = list(self._open), [deque(queue) for queue in self._queues]
        return made

    def ready(self) -> list[int]:
        """Queues whose head may start now. Raises ScheduleError when work is left and none may."""
        heads = {number: queue[0][0] for number, queue in enumerate(self._queues) if queue}
        ready = [number for number, append in heads.items() if not self._blockers(append)]
        if heads and not ready:
            stuck = ", ".join(
                f"queue {number} at append {append} for {self._blockers(append)}"
                for number, append in heads.items()
            )
            raise ScheduleError(f"deadlock: {stuck}")
        return ready

    def _blockers(self, append: int) -> list[int]:
        return [other for other in self._before[append] if self._open[other]]

    def start_next(self, queue: int) -> Step:
        """Run the next rTask of `queue` to its signal."""
        step = self._queues[queue].popleft()
        self._open[step[0]] -= 1
        return step


def _queues(schedule: Schedule, mode: Mode, steps: list[Step]) -> list[list[Step]]:
    if mode is Mode.SERIAL:
        return [steps]
    if mode is Mode.PER_OP:
        return [[step] for step in steps]
    queues: list[list[Step]] = [[] for _ in range(schedule.device.veus)]
    for number, task in steps:
        queues[schedule.appends[number].veu_of(task)].append((number, task))
    if mode is Mode.PER_WAVE:
        _check_stretches(schedule, queues)
    return queues


def _check_stretches(schedule: Schedule, queues: list[list[Step]]) -> None:
    """The launcher finds a wave in a vEU's list by bisection."""
    for veu, queue in enumerate(queues):
        waves = [schedule.appends[number].wave for number, _ in queue]
        if waves != sorted(waves):
            raise ScheduleError(f"vEU {veu} does not run wave by wave: {waves}")


def _before(appends: list[Append], number: int, mode: Mode) -> list[int]:
    """The appends that must have ended before an rTask of append `number` starts."""
    if mode is Mode.PERSISTENT:
        return list(appends[number].waits)
    if mode is Mode.PER_WAVE:
        return [n for n, a in enumerate(appends) if a.wave < appends[number].wave]
    if mode is Mode.SERIAL:
        return []
    return [n for n in range(number) if not _side_by_side(appends, n, number)]


def _carried_from(schedule: Schedule, number: int, mode: Mode) -> list[int]:
    """The appends whose results append `number` reads as they say that they are there: all of each."""
    append = schedule.appends[number]
    if mode is not Mode.PERSISTENT:
        return []
    read = {schedule.launches[append.launch].reads[operand].buffer for operand in append.carried}
    return [
        n
        for n, other in enumerate(schedule.appends)
        if read & {access.buffer for access in schedule.launches[other.launch].writes}
    ]


def _side_by_side(appends: list[Append], first: int, second: int) -> bool:
    """Whether two appends are neighbours of one wave, on vEUs of their own."""
    wave = appends[first].wave
    neighbours = all(a.wave == wave for a in appends[first : second + 1])
    a, b = appends[first], appends[second]
    apart = a.first_veu + a.veus <= b.first_veu or b.first_veu + b.veus <= a.first_veu
    return neighbours and apart


def interleave(
    schedule: Schedule,
    run_task: Callable[[int, int], None],
    rng: np.random.Generator,
    mode: Mode = Mode.PERSISTENT,
) -> None:
    """Call `run_task(append, task)` for every rTask, in a random order that is legal in `mode`.

    Now and then a queue is favoured for a while, so that some run far ahead of others.
    Raises ScheduleError when the schedule deadlocks.
    """
    machine = Machine(schedule, mode)
    favourite = -1
    while ready := machine.ready():
        if favourite not in ready or rng.random() < 0.2:
            favourite = ready[int(rng.integers(len(ready)))]
        run_task(*machine.start_next(favourite))
