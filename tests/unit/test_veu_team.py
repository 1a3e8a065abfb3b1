"""Jobs of a team of threads: each is walked once, by its thread or by who posted it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import irkit
from irkit.runtime.intrinsics.cpu_team import DONE, JOB_WORDS, MAILBOX_WORDS
from irkit.runtime.intrinsics.posix_threads import CPU_WORDS
from irkit.runtime.veu_team import _native
from irkit.weights import Array


def nothing_to_walk(count: int) -> Array:
    """Jobs of no records, which leave zero where it is said how many were walked."""
    jobs = np.zeros((count, JOB_WORDS), dtype=np.int64)
    jobs[:, DONE] = -1
    return jobs


def test_a_job_that_no_thread_begins_is_walked_by_who_waits_for_it() -> None:
    native, mailboxes = _native(), np.zeros((3, MAILBOX_WORDS), dtype=np.int64)
    taken = np.zeros(CPU_WORDS, dtype=np.int64)
    for mailbox in mailboxes:
        native.make(mailbox.ctypes.data, taken.ctypes.data)
    for _ in range(5):
        jobs = nothing_to_walk(4)
        for mailbox, job in zip(mailboxes, jobs[1:], strict=True):
            assert not native.post(mailbox.ctypes.data, job.ctypes.data)
        native.finish(jobs.ctypes.data, mailboxes.ctypes.data, 3)
        assert (jobs[:, DONE] == 0).all()


def until(said: Callable[[], bool]) -> None:
    """Wait until it is so, for five minutes at most."""
    end = time.monotonic() + 300
    while not said():
        assert time.monotonic() < end
        time.sleep(1e-3)


@pytest.fixture
def member() -> Iterator[tuple[int, Array]]:
    """The address of the mailbox of a thread that sleeps at once, and the set of CPUs of its call."""
    native, mailbox = _native(), np.zeros(MAILBOX_WORDS, dtype=np.int64)
    taken, at = np.zeros(CPU_WORDS, dtype=np.int64), mailbox.ctypes.data
    native.make(at, taken.ctypes.data)
    served = threading.Thread(target=native.serve, args=(at, 10))
    served.start()
    yield at, taken
    native.post(at, 0)
    served.join(60)
    assert not served.is_alive()


def test_a_thread_without_a_job_sleeps_and_is_woken_for_the_next(
    member: tuple[int, Array],
) -> None:
    native, (at, _) = _native(), member
    for _ in range(50):
        (job,) = nothing_to_walk(1)
        until(lambda job=job: native.post(at, job.ctypes.data) or job[DONE] == 0)
        until(lambda job=job: job[DONE] == 0)


def test_who_is_woken_for_nothing_sleeps_again(member: tuple[int, Array]) -> None:
    native, (at, _) = _native(), member
    for _ in range(50):
        until(lambda: native.wake(at))
    (job,) = nothing_to_walk(1)
    native.post(at, job.ctypes.data)
    until(lambda: job[DONE] == 0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be placed here")
def test_who_is_woken_is_named_a_cpu_and_is_not_bound_to_it(member: tuple[int, Array]) -> None:
    native, (at, taken) = _native(), member
    cpus = sorted(os.sched_getaffinity(0))
    for cpu in (cpus[0], cpus[-1]):
        taken[:] = 0
        taken[cpu // 64] = np.uint64(1 << cpu % 64).astype(np.int64)
        until(lambda: native.wake(at))
        named = {64 * w + b for w in range(CPU_WORDS) for b in range(64) if taken[w] >> b & 1}
        assert len(named) == min(2, len(cpus))
        assert named <= {cpu, *cpus}
    until(lambda: native.wake(at))  # it slept, so it has run
    (thread,) = [t for t in threading.enumerate() if getattr(t, "_args", ())[:1] == (at,)]
    until(lambda: os.sched_getaffinity(thread.native_id or 0) == set(cpus))


def test_each_job_is_walked_once_whoever_is_late() -> None:
    """A program that lost a record, or walked it after its call, would say so or be wrong."""
    text = """
    func.func @main(%x: tensor<65536xf32>) -> tensor<65536xf32>
        attributes {irkit.fastmath = #arith.fastmath<afn>} {
      %y = graph.exp %x : (tensor<65536xf32>) -> tensor<65536xf32>
      func.return %y : tensor<65536xf32>
    }
    """
    x = np.random.default_rng(0).standard_normal(65536).astype(np.float32)
    wanted = irkit.compile(irkit.parse(text), device="cpu1")(x)
    for mode in ("per-wave", "persistent"):
        program = irkit.compile(irkit.parse(text), device="cpu4", mode=mode)
        for call in range(300):
            y = program(x + np.float32(0))
            assert call % 20 or (y == wanted).all()
