"""Threads that are vEUs of CPU programs, and stay awake a little while for the next call.

To wake a sleeping thread takes tens of microseconds, as long as much of what it is woken for. A thread of the
team looks for its next job for `_PATIENCE` pauses before it sleeps; jobs are passed in memory, without the
interpreter (`intrinsics/cpu_team.py`).
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
from irkit.runtime.intrinsics.cpu_team import DONE, JOB_WORDS, MAILBOX_WORDS
from irkit.runtime.loading import entry_points
from irkit.runtime.veu_threads import Places
from irkit.runtime.workspace import Jobs
from irkit.weights import Array

_PATIENCE = 4000
"""Pauses: about 50 to 150 microseconds."""
_MAX_MEMBERS = 1024
# More than any counter reaches, and far from overflow.
RELEASED = 1 << 62

_NATIVE = '''"""What the threads of a team run, for all programs."""

from numba import types

from irkit.runtime.intrinsics.cpu_team import finish_jobs, post_job, serve_jobs
from irkit.runtime.intrinsics.engine import njit


@njit(types.boolean(types.int64, types.int64), nogil=True, cache=True)
def serve(mailbox, patience):
    return serve_jobs(mailbox, patience)


@njit(types.boolean(types.int64, types.int64), nogil=True, cache=True)
def post(mailbox, job):
    return post_job(mailbox, job)


@njit(types.none(types.int64, types.int64, types.int64), nogil=True, cache=True)
def finish(job, mailboxes, count):
    finish_jobs(job, mailboxes, count)
'''


class _Native(NamedTuple):
    serve: Callable[..., bool]
    post: Callable[..., bool]
    finish: Callable[..., None]


@functools.cache
def _native() -> _Native:
    """Compiled once for all programs. Raises ArtifactError where machine code cannot be kept."""
    return _Native(*entry_points(_NATIVE, _Native._fields))


class _Member:
    """A thread, the address of its mailbox, and what it sleeps on."""

    def __init__(self, mailbox: int) -> None:
        self.mailbox, self.places = mailbox, Places()
        self._native, self._sleep = _native(), threading.Lock()
        self._sleep.acquire()
        self._thread = threading.Thread(target=self._serve, name="irkit-veu", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self.places.take()
        while self._native.serve(self.mailbox, _PATIENCE):
            self._sleep.acquire()
            self.places.take()

    def post(self, job: int, places: Places) -> None:
        """Give it the job at an address."""
        # Before it wakes, which it does where its last job was done.
        self.places = places
        if self._native.post(self.mailbox, job):
            self.wake()

    def wake(self) -> None:
        """Let it look for a job; one that is awake only looks once more."""
        if self._sleep.locked():
            self._sleep.release()

    def end(self) -> None:
        """Let the thread end."""
        self.post(0, self.places)
        self._thread.join(timeout=1)


class Ranges(NamedTuple):
    """Which records each vEU walks: (begin, end), those vEUs that have any, and how many records all have."""

    of_veus: list[tuple[int, int]]
    busy: list[int]
    total: int


def ranges_of(of_veus: list[tuple[int, int]]) -> Ranges:
    """The ranges (begin, end) of vEUs."""
    busy = [v for v, (begin, end) in enumerate(of_veus) if begin < end]
    total = sum(end - begin for begin, end in of_veus)
    return Ranges(of_veus, busy, total)


class VeuTeam:
    """The threads beside the caller's, one call at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mailboxes = np.zeros((_MAX_MEMBERS, MAILBOX_WORDS), dtype=np.int64)
        self._address: int = self._mailboxes.ctypes.data
        self._members: list[_Member] = []

    def run(self, jobs: Jobs, veus: Sequence[int], counters: Array) -> int:
        """Walk the job `jobs[v]` of each of `veus`, the first on this thread; how many records were run.

        An interrupt waits for the threads, which write into the caller's arrays; whoever waits in `counters`
        for a vEU that was not started is let go. Raises DeviceError where there are no threads.
        """
        with self._lock:
            self._grow(len(veus) - 1)
            first, places, finish = jobs.address, Places(), _native().finish
            try:
                for member, veu in zip(self._members, veus[1:], strict=False):
                    member.post(first + 8 * JOB_WORDS * veu, places)
                finish(first + 8 * JOB_WORDS * veus[0], self._address, len(self._members))
            except BaseException:
                counters.fill(RELEASED)
                for member in self._members:
                    member.wake()
                finish(0, self._address, len(self._members))
                raise
        return sum([jobs.values[JOB_WORDS * veu + DONE] for veu in veus])

    def run_alone(self, jobs: Jobs, veu: int) -> int:
        """Walk the job of one vEU on this thread, whatever the team does; how many records were run."""
        _native().finish(jobs.address + 8 * JOB_WORDS * veu, 0, 0)
        return int(jobs.words[veu, DONE])

    def _grow(self, count: int) -> None:
        try:
            while len(self._members) < count:
                address = self._mailboxes[len(self._members)].ctypes.data
                self._members.append(_Member(address))
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
