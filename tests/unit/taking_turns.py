"""Threads that take turns: one runs until it has to wait. Threads that all run fight for Python's lock, which
takes longer than what they do between two barriers.

Who is next is picked at random, and always the same for a seed. Those whom a barrier lets go on are favoured,
but for now and then, so that a warp runs far ahead of others.
"""

from __future__ import annotations

import functools
import os
import random
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any


class StuckError(Exception):
    """All threads wait for others."""


class _Stopped(BaseException):
    """Another thread has failed."""


def _stay_on_one_core() -> None:
    """This thread, as all of its process: to wake a thread of another core takes far longer. Processes of
    tests side by side have different ones."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        os.sched_setaffinity(0, {cores[number % len(cores)]})


class Workers:
    """Threads that are kept: to start one takes longer than what most of them do."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self.ended = False

    def taken(self, work: Callable[[], None]) -> _Worker:
        """A thread that does a work as soon as it has its turn."""
        worker = self._idle.pop() if self._idle else _Worker(self)
        worker.work = work
        return worker

    def back(self, worker: _Worker) -> None:
        self._idle.append(worker)

    def end(self) -> None:
        """Let them end, those that are at work behind it."""
        self.ended = True
        for worker in self._idle:
            # Where a crew has failed all have a turn.
            if worker.turn.locked():
                worker.turn.release()


class _Worker:
    def __init__(self, workers: Workers) -> None:
        self.turn = threading.Lock()
        self.turn.acquire()
        self.work: Callable[[], None] | None = None
        threading.Thread(target=self._live, args=(workers,), daemon=True).start()

    def _live(self, workers: Workers) -> None:
        _stay_on_one_core()
        while True:
            self.turn.acquire()
            if self.work is None:
                return
            self.work()
            self.work = None
            workers.back(self)
            if workers.ended:
                return


class Crew:
    """Threads of which one runs at a time."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._ready: list[Any] = []
        self._turns: list[Any] = []
        self._local = threading.local()
        self._ended: list[None] = []
        self._over: SimpleQueue[None] = SimpleQueue()
        self._problem: BaseException | None = None

    def run(self, works: Sequence[Callable[[], None]], workers: Workers | None = None) -> None:
        """All works, each by a thread. Raises what the first that fails raised, and StuckError; the workers
        are of no use then."""
        crew = workers or Workers()
        for work in works:
            worker = crew.taken(functools.partial(self._live, len(self._turns), work))
            self._turns.append(worker.turn)
        self._ready = self._turns[:]
        self._next()
        self._over.get()
        if workers is None or self._problem is not None:
            crew.end()
        if self._problem is not None:
            raise self._problem

    def _live(self, number: int, work: Callable[[], None]) -> None:
        self._local.turn = self._turns[number]
        try:
            if self._problem is None:
                work()
        except _Stopped:
            pass
        except BaseException as problem:
            self._fail(problem)
        self._ended.append(None)
        if len(self._ended) == len(self._turns):
            self._over.put(None)
        elif self._problem is None:
            self._next()

    def _fail(self, problem: BaseException) -> None:
        self._problem = problem
        for turn in self._turns:
            if turn.locked():
                turn.release()

    def _next(self) -> None:
        ready = self._ready
        if not ready:
            left = len(self._turns) - len(self._ended)
            self._fail(StuckError(f"{left} threads wait for each other"))
            return
        if self._random.random() < 0.02:
            at = self._random.randrange(len(ready))
            ready[at], ready[-1] = ready[-1], ready[at]
        ready.pop().release()

    def sleep(self, sleepers: list[Any]) -> None:
        """Wait until somebody wakes those of a list."""
        turn = self._local.turn
        sleepers.append(turn)
        self._next()
        turn.acquire()
        if self._problem is not None:
            raise _Stopped

    def wake(self, sleepers: list[Any]) -> None:
        """Those of a list, which is empty then, may go on."""
        self._random.shuffle(sleepers)
        self._ready += sleepers
        sleepers.clear()


class Barrier:
    """A barrier of so many threads of a crew; the last one that comes goes on at once."""

    def __init__(self, crew: Crew, count: int) -> None:
        self._crew, self._others = crew, count - 1
        self._sleepers: list[Any] = []

    def wait(self) -> None:
        if len(self._sleepers) < self._others:
            self._crew.sleep(self._sleepers)
        else:
            self._crew.wake(self._sleepers)
