"""Units compiled side by side: some here, the others by processes of `compile_worker`.

Numba's front end holds Python's global lock, so threads would take turns. Processes are started as programs
of their own: neither forked, which is unsafe beside threads, nor by `multiprocessing`, which would import the
user's main module again. A worker that dies, hangs or fails costs time alone: what it had is compiled here.
"""

from __future__ import annotations

import heapq
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NamedTuple, cast

from irkit.errors import InvalidInputError
from irkit.processors import usable_cores
from irkit.runtime.compile_worker import receive, send, take_step
from irkit.runtime.fewer_collections import fewer_collections
from irkit.runtime.interrupts import interrupts_held

MOST_WORKERS = 15
"""Where `IRKIT_COMPILE_WORKERS` is a number, it is the limit: 0 for a process beside others that keep all
cores busy, where a worker costs its start and gains nothing."""
UNITS_A_WORKER = {"cuda": 2}
"""Units for which another worker is worth its start, which takes about as long as one of a GPU's large ones;
of other steps `FEW_UNITS`."""
FEW_UNITS = 3
PATIENCE_S = 120.0
"""How long a step may take in a worker before it is taken here instead."""


_ahead: list[subprocess.Popen[bytes]] = []
"""Workers that nobody has asked for anything yet."""


class _Scopes:
    """How many `none_left_over` there are, of all threads."""

    count = 0


class Request(NamedTuple):
    """A step of compiling: the rOperator that it is for, for messages, what `take_step` takes, how long it
    is, in any unit, and under which key its payload is kept."""

    symbol: str
    step: str
    arguments: tuple[Any, ...]
    length: int
    key: str = ""


Done = Callable[[Request, bytes], Iterable[Request]]
"""Told what came of a request, it gives the requests that hang on it."""


def start_ahead(step: str, requests: int) -> None:
    """Start the workers that so many requests of a step will want, so that they have imported what it needs
    when it begins; within `none_left_over`."""
    for _ in range(_crew_size(step, requests) - len(_ahead)):
        worker = _started(step)
        if worker is None:
            return
        _ahead.append(worker)


@contextmanager
def none_left_over() -> Generator[None]:
    """End the workers that were started ahead, and that nobody has asked for anything, at the end of the
    outermost of these."""
    _Scopes.count += 1
    try:
        yield
    finally:
        _Scopes.count -= 1
        while not _Scopes.count and (worker := _taken_over()) is not None:
            _end(worker)


def _crew_size(step: str, requests: int) -> int:
    worth = requests // UNITS_A_WORKER.get(step, FEW_UNITS)
    return max(0, min(usable_cores() - 1, worth, _most_workers()))


def _most_workers() -> int:
    given = os.environ.get("IRKIT_COMPILE_WORKERS", "")
    if given and not given.isdecimal():
        raise InvalidInputError(
            f"IRKIT_COMPILE_WORKERS is {given!r}: a number of processes, or none"
        )
    return int(given) if given else MOST_WORKERS


def _taken_over() -> subprocess.Popen[bytes] | None:
    try:
        return _ahead.pop()
    except IndexError:
        return None


def compile_units(
    requests: Sequence[Request],
    done: Done,
    workers: int | None = None,
    expected: int = 0,
) -> None:
    """Take every request, and those that `done` gives, in any order; `done` is called by any thread, by one
    at a time. `expected` is how many requests it will give. Raises what compiling raises, with a note that
    names the rOperator."""
    if workers is None:
        step = requests[0].step if requests else ""
        worth = _crew_size(step, len(requests) + expected)
        # Those that are there already cost nothing more.
        workers = max(worth, min(len(_ahead), len(requests) + expected))
    crew = _Crew(requests, done)
    try:
        crew.start(workers)
        with fewer_collections():
            crew.work()
    finally:
        crew.dismiss()


class _Crew:
    def __init__(self, requests: Iterable[Request], done: Done) -> None:
        self._tell = done
        # What waits, the longest first: none of them should be the last one that is waited for.
        self._waiting: list[tuple[int, int, Request]] = []
        self._count = 0
        self._taken = 0
        self._dismissed = False
        self._changed = threading.Condition()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._add(requests)

    def start(self, count: int) -> None:
        for _ in range(count):
            worker = _taken_over() or _started()
            if worker is None:
                return
            self._workers.append(worker)
            thread = threading.Thread(target=self._lead, args=(worker,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def work(self) -> None:
        """Take steps here beside the workers; what they do not come to an end with is taken from them."""
        while True:
            request = self._next(PATIENCE_S)
            if request is not None:
                with interrupts_held():
                    self._done(request, _compiled(request))
            elif self._taken:
                self.dismiss()
            else:
                return

    def _add(self, requests: Iterable[Request]) -> None:
        for request in requests:
            heapq.heappush(self._waiting, (-request.length, self._count, request))
            self._count += 1

    def _next(self, patience: float | None = None) -> Request | None:
        """A request to take now; None if there will be none, or nothing has come for `patience` seconds."""
        with self._changed:
            while not self._waiting and self._taken:
                # Whoever leads a worker waits without end, but for the crew's.
                if self._dismissed and patience is None:
                    return None
                if not self._changed.wait(patience):
                    return None
            if not self._waiting:
                return None
            self._taken += 1
            return heapq.heappop(self._waiting)[2]

    def _done(self, request: Request, payload: bytes) -> None:
        with self._changed:
            self._add(self._tell(request, payload))
            self._taken -= 1
            self._changed.notify_all()

    def _given_up(self, request: Request) -> None:
        with self._changed:
            self._add([request])
            self._taken -= 1
            self._changed.notify_all()

    def _lead(self, worker: subprocess.Popen[bytes]) -> None:
        """Hand requests to a worker one after another, until there are no more or it fails."""
        while not self._dismissed and (request := self._next()) is not None:
            done = False
            try:
                payload = _asked(worker, request)
                if payload is None:
                    return
                self._done(request, payload)
                done = True
            finally:
                if not done:
                    self._given_up(request)

    def dismiss(self) -> None:
        """End the workers, whatever they are at, and all that stands for them here.

        Where this process was interrupted, or failed at what it had taken, that never comes to an end: nobody
        may wait for it.
        """
        with self._changed:
            self._dismissed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join()
        for worker in self._workers:
            _end(worker)
        self._workers, self._threads = [], []


def _compiled(request: Request) -> bytes:
    try:
        return take_step(request.step, request.arguments)
    except BaseException as error:
        error.add_note(f"while machine code was made of rOperator @{request.symbol}")
        raise


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    with suppress(OSError):
        # Waits for its end, and closes its pipes.
        worker.__exit__(None, None, None)


def _started(step: str = "") -> subprocess.Popen[bytes] | None:
    """A worker that imports what this process does, at once what a step needs; None where no process can be
    started."""
    if not sys.executable:
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "irkit.runtime.compile_worker", *([step] if step else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            # An interrupt from the keyboard is for this process, which ends them.
            start_new_session=True,
        )
    except OSError:
        return None


def _asked(worker: subprocess.Popen[bytes], request: Request) -> bytes | None:
    """What a worker makes of a request; None if it fails or goes."""
    try:
        send(cast(BinaryIO, worker.stdin), (request.step, request.arguments))
        well, code = receive(cast(BinaryIO, worker.stdout))
    except (OSError, EOFError, ValueError):
        return None
    return code if well else None
