"""Threads that are vEUs of CPU programs, and stay awake a little while for the next call.

To wake a sleeping thread takes tens of microseconds, as long as much of what it is woken for. A thread of the
team looks for its next job for `_PATIENCE` pauses before it sleeps; jobs are passed, and threads sleep and
wake, without the interpreter (`intrinsics/cpu_team.py`).
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.function_code import functions_of
from irkit.runtime.intrinsics.cpu_team import DONE, JOB_WORDS, MAILBOX_WORDS
from irkit.runtime.intrinsics.posix_threads import CPU_WORDS
from irkit.runtime.workspace import Jobs
from irkit.weights import Array

_PATIENCE = 4000
"""Pauses: about 50 to 150 microseconds."""
_MAX_MEMBERS = 1024

_NATIVE = '''"""What the threads of a team run, for all programs."""

from numba import types

from irkit.runtime.intrinsics.cpu_team import (
    finish_jobs, make_mailbox, post_job, run_jobs, serve_jobs, wake_up,
)
from irkit.runtime.intrinsics.engine import njit


@njit(types.none(types.int64, types.int64), nogil=True, cache=True)
def make(mailbox, places):
    return make_mailbox(mailbox, places)


@njit(types.none(types.int64, types.int64), nogil=True, cache=True)
def serve(mailbox, patience):
    return serve_jobs(mailbox, patience)


@njit(types.boolean(types.int64, types.int64), nogil=True, cache=True)
def post(mailbox, job):
    return post_job(mailbox, job)


@njit(types.boolean(types.int64), nogil=True, cache=True)
def wake(mailbox):
    return wake_up(mailbox)


@njit(types.none(*[types.int64] * 6), nogil=True, cache=True)
def run(jobs, veus, count, mailboxes, members, places):
    run_jobs(jobs, veus, count, mailboxes, members, places)


@njit(types.none(types.int64, types.int64, types.int64), nogil=True, cache=True)
def finish(job, mailboxes, count):
    finish_jobs(job, mailboxes, count)
'''


class _Native(NamedTuple):
    make: Callable[..., None]
    serve: Callable[..., None]
    post: Callable[..., bool]
    wake: Callable[..., bool]
    run: Callable[..., None]
    finish: Callable[..., None]


@functools.cache
def _native() -> _Native:
    """Compiled once for all programs."""
    return _Native(**functions_of(_NATIVE).called)


class _Member:
    """A thread, and the address of its mailbox."""

    def __init__(self, mailbox: int, places: int) -> None:
        self.mailbox, self._native = mailbox, _native()
        self._native.make(mailbox, places)
        self._thread = threading.Thread(
            target=self._native.serve, args=(mailbox, _PATIENCE), name="irkit-veu", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """Let the thread end."""
        self._native.post(self.mailbox, 0)
        self._thread.join(timeout=1)


class Numbers(NamedTuple):
    """Numbers of vEUs, also as an array that compiled code reads."""

    values: list[int]
    words: Array
    address: int


def numbers_of(veus: Sequence[int]) -> Numbers:
    """The numbers of vEUs."""
    words = np.array(veus, dtype=np.int64)
    return Numbers(list(veus), words, words.ctypes.data)


class Ranges(NamedTuple):
    """Which records each vEU walks: (begin, end), those vEUs that have any, and how many records all have."""

    of_veus: list[tuple[int, int]]
    busy: Numbers
    total: int


def ranges_of(of_veus: list[tuple[int, int]]) -> Ranges:
    """The ranges (begin, end) of vEUs."""
    busy = [v for v, (begin, end) in enumerate(of_veus) if begin < end]
    total = sum(end - begin for begin, end in of_veus)
    return Ranges(of_veus, numbers_of(busy), total)


class VeuTeam:
    """The threads beside the caller's, one call at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mailboxes = np.zeros((_MAX_MEMBERS, MAILBOX_WORDS), dtype=np.int64)
        self._address: int = self._mailboxes.ctypes.data
        self._places = np.zeros(CPU_WORDS, dtype=np.int64)
        self._taken: int = self._places.ctypes.data
        self._members: list[_Member] = []

    def run(self, jobs: Jobs, veus: Numbers) -> int:
        """Walk the job `jobs[v]` of each of `veus`, the first on this thread; how many records were run.

        An interrupt waits for all of them, since they are one call of compiled code. Raises DeviceError where
        there are no threads.
        """
        count = len(veus.values)
        with self._lock:
            self._grow(count - 1)
            members = len(self._members)
            _native().run(jobs.address, veus.address, count, self._address, members, self._taken)
        return sum([jobs.values[JOB_WORDS * veu + DONE] for veu in veus.values])

    def run_alone(self, jobs: Jobs, veu: int) -> int:
        """Walk the job of one vEU on this thread, whatever the team does; how many records were run."""
        _native().finish(jobs.address + 8 * JOB_WORDS * veu, 0, 0)
        return int(jobs.words[veu, DONE])

    def _grow(self, count: int) -> None:
        try:
            while len(self._members) < count:
                address = self._mailboxes[len(self._members)].ctypes.data
                self._members.append(_Member(address, self._taken))
        except (IndexError, RuntimeError) as error:
            raise DeviceError(f"no threads for {count} more vEUs: {error}") from None

    def end(self) -> None:
        """Let the threads end; the next call starts new ones."""
        if not self._lock.acquire(timeout=1):
            return
        try:
            for member in self._members:
                member.end()
            self._members.clear()
            self._mailboxes[:] = 0
        finally:
            self._lock.release()


_team = [VeuTeam()]


def veu_team() -> VeuTeam:
    """The one of this process."""
    return _team[0]


def _after_fork() -> None:
    """A forked child has none of the parent's threads, and whoever held its lock is gone."""
    _team[0] = VeuTeam()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
# Machine code goes with the process: nobody may be in it then.
atexit.register(lambda: veu_team().end())
