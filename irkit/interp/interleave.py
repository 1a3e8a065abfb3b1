"""A schedule's meaning as it runs: rTasks in any order that the vEUs' queues and the waits allow.

This is the judge of the schedule verifier, and shares nothing with it but the data model
`irkit.schedule.model`, which it imports for the types.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from irkit.errors import ScheduleError
from irkit.schedule.model import Schedule

Step = tuple[int, int]
"""(append, rTask)"""


class Machine:
    """The state of a run: per vEU the rTasks still to do, per append how many have not signalled."""

    def __init__(self, schedule: Schedule) -> None:
        self._appends = schedule.appends
        self._queues: list[deque[Step]] = [deque() for _ in range(schedule.device.veus)]
        self._open = [schedule.launches[append.launch].tasks for append in schedule.appends]
        for number, append in enumerate(schedule.appends):
            for task in range(self._open[number]):
                self._queues[append.veu_of(task)].append((number, task))

    def ready(self) -> list[int]:
        """vEUs whose next rTask may start now. Raises ScheduleError when work is left and none may."""
        heads = {veu: queue[0][0] for veu, queue in enumerate(self._queues) if queue}
        ready = [veu for veu, append in heads.items() if not self._blockers(append)]
        if heads and not ready:
            stuck = ", ".join(
                f"vEU {veu} at append {append} for {self._blockers(append)}"
                for veu, append in heads.items()
            )
            raise ScheduleError(f"deadlock: {stuck}")
        return ready

    def _blockers(self, append: int) -> list[int]:
        return [wait for wait in self._appends[append].waits if self._open[wait]]

    def head(self, veu: int) -> Step:
        """The next rTask of `veu`."""
        return self._queues[veu][0]

    def start_next(self, veu: int) -> Step:
        """Run the next rTask of `veu` to its signal."""
        step = self._queues[veu].popleft()
        self._open[step[0]] -= 1
        return step

    def undo(self, veu: int, step: Step) -> None:
        """Take back `start_next`."""
        self._queues[veu].appendleft(step)
        self._open[step[0]] += 1


def interleave(
    schedule: Schedule, run_task: Callable[[int, int], None], rng: np.random.Generator
) -> None:
    """Call `run_task(append, task)` for every rTask, in a random legal order.

    Now and then a vEU is favoured for a while, so that some run far ahead of others.
    Raises ScheduleError when the schedule deadlocks.
    """
    machine = Machine(schedule)
    favourite = -1
    while ready := machine.ready():
        if rng.random() < 0.2:
            favourite = int(rng.integers(schedule.device.veus))
        veu = favourite if favourite in ready else ready[int(rng.integers(len(ready)))]
        run_task(*machine.start_next(veu))


def all_interleavings(schedule: Schedule, limit: int | None = None) -> Iterator[list[Step]]:
    """Every legal order of the rTasks, at most `limit` of them; for tiny schedules.

    Raises ScheduleError when the schedule deadlocks.
    """
    yield from islice(_orders(Machine(schedule), []), limit)


def _orders(machine: Machine, done: list[Step]) -> Iterator[list[Step]]:
    ready = machine.ready()
    if not ready:
        yield list(done)
    for veu in ready:
        step = machine.start_next(veu)
        done.append(step)
        yield from _orders(machine, done)
        machine.undo(veu, done.pop())
