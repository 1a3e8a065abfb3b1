"""Threads that take turns: one runs until it has to wait. Threads that all run fight for Python's lock, which
takes longer than what they do between two barriers.

Who is next is picked at random, and always the same for a seed. Those whom a barrier lets go on are favoured,
but for now and then, so that a warp runs far ahead of others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any


class StuckError(Exception):
    """All threads wait for others."""


class _Stopped(BaseException):
    """Another thread has failed."""


class Crew:
    """Threads of which one runs at a time."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._ready: list[Any] = []
        self._turns: list[Any] = []
        self._local = threading.local()
        self._left = 0
        self._problem: BaseException | None = None

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """All works, each by a thread. Raises what the first that fails raised, and StuckError."""
        self._turns = [threading.Lock() for _ in works]
        self._left = len(works)
        workers: list[threading.Thread] = []
        for turn, work in zip(self._turns, works, strict=True):
            turn.acquire()
            workers.append(threading.Thread(target=self._live, args=(turn, work), daemon=True))
        for worker in workers:
            worker.start()
        self._ready = self._turns[:]
        self._next()
        for worker in workers:
            worker.join()
        if self._problem is not None:
            raise self._problem

    def _live(self, turn: Any, work: Callable[[], None]) -> None:
        self._local.turn = turn
        turn.acquire()
        try:
            if self._problem is None:
                work()
        except _Stopped:
            return
        except BaseException as problem:
            self._fail(problem)
            return
        if self._problem is None:
            self._left -= 1
            if self._left:
                self._next()

    def _fail(self, problem: BaseException) -> None:
        self._problem = problem
        for turn in self._turns:
            if turn.locked():
                turn.release()

    def _next(self) -> None:
        ready = self._ready
        if not ready:
            self._fail(StuckError(f"{self._left} threads wait for each other"))
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
