"""Units compiled side by side: some here, the others by processes of `compile_worker`.

Numba's front end holds Python's global lock, so threads would take turns. Processes are started as programs
of their own: neither forked, which is unsafe beside threads, nor by `multiprocessing`, which would import the
user's main module again. A worker that dies, hangs or fails costs time alone: what it had is compiled here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, cast

from irkit.processors import usable_cores
from irkit.runtime.compile_worker import compile_unit, receive, send

MOST_WORKERS = 15
# A worker takes about as long to start as three units to compile.
UNITS_A_WORKER = 3
PATIENCE_S = 120.0
"""How long a unit may take in a worker before it is compiled here instead."""


class Request(NamedTuple):
    """A unit to compile: its rOperator, for messages, and what `compile_worker` takes."""

    symbol: str
    target: str
    text: str
    options: tuple[Any, ...] = ()


def compile_units(
    requests: Sequence[Request],
    done: Callable[[int, bytes], None],
    workers: int | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Compile every request, and tell `done` its number and what it compiled to, in any order and from any
    thread; `meanwhile` is what this process does first. Raises what compiling raises, with a note that names
    the rOperator."""
    if workers is None:
        workers = min(usable_cores() - 1, len(requests) // UNITS_A_WORKER, MOST_WORKERS)
    crew = _Crew(requests, done)
    try:
        crew.start(workers)
        meanwhile()
        crew.work()
    finally:
        crew.dismiss()


class _Crew:
    def __init__(self, requests: Sequence[Request], done: Callable[[int, bytes], None]) -> None:
        self._requests, self._done = requests, done
        # Long texts first: none of them should be the last one that is waited for.
        order = sorted(range(len(requests)), key=lambda i: -len(requests[i].text))
        self._waiting = deque(order)
        self._workers: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> None:
        for _ in range(count):
            worker = _started()
            if worker is None:
                return
            self._workers.append(worker)
            thread = threading.Thread(target=self._lead, args=(worker,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def work(self) -> None:
        """Compile here what no worker takes; then what workers gave up."""
        self._work_here()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self.dismiss()
        self._work_here()

    def _work_here(self) -> None:
        while True:
            try:
                number = self._waiting.popleft()
            except IndexError:
                return
            self._done(number, _compiled(self._requests[number]))

    def _lead(self, worker: subprocess.Popen[bytes]) -> None:
        """Hand units to a worker one after another, until none is left or it fails."""
        while True:
            try:
                number = self._waiting.popleft()
            except IndexError:
                return
            done = False
            try:
                code = _asked(worker, self._requests[number])
                if code is None:
                    return
                self._done(number, code)
                done = True
            finally:
                if not done:
                    self._waiting.append(number)

    def dismiss(self) -> None:
        """End the workers, whatever they are at, and all that stands for them here."""
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join()
        for worker in self._workers:
            with suppress(OSError):
                # Waits for its end, and closes its pipes.
                worker.__exit__(None, None, None)
        self._workers, self._threads = [], []


def _compiled(request: Request) -> bytes:
    try:
        return compile_unit(*request[1:])
    except BaseException as error:
        error.add_note(f"while machine code was made of rOperator @{request.symbol}")
        raise


def _started() -> subprocess.Popen[bytes] | None:
    """A worker that imports what this process does; None where no process can be started."""
    if not sys.executable:
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "irkit.runtime.compile_worker"],
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
    """What a worker makes of a unit; None if it fails or goes."""
    try:
        send(cast(BinaryIO, worker.stdin), request[1:])
        well, code = receive(cast(BinaryIO, worker.stdout))
    except (OSError, EOFError, ValueError):
        return None
    return code if well else None
