"""Jobs of a team of threads: each is walked once, by its thread or by who posted it."""

from __future__ import annotations

import threading

import numpy as np

import irkit
from irkit.runtime.intrinsics.cpu_team import DONE, JOB_WORDS, MAILBOX_WORDS
from irkit.runtime.veu_team import _native
from irkit.weights import Array


def nothing_to_walk(count: int) -> Array:
    """Jobs of no records, which leave zero where it is said how many were walked."""
    jobs = np.zeros((count, JOB_WORDS), dtype=np.int64)
    jobs[:, DONE] = -1
    return jobs


def test_a_job_that_no_thread_begins_is_walked_by_who_waits_for_it() -> None:
    native, mailboxes = _native(), np.zeros((3, MAILBOX_WORDS), dtype=np.int64)
    for _ in range(5):
        jobs = nothing_to_walk(4)
        for mailbox, job in zip(mailboxes, jobs[1:], strict=True):
            assert not native.post(mailbox.ctypes.data, job.ctypes.data)
        native.finish(jobs.ctypes.data, mailboxes.ctypes.data, 3)
        assert (jobs[:, DONE] == 0).all()


def test_what_was_taken_is_nothing_to_wake_for() -> None:
    """A thread that looks later finds no job, goes to sleep, and is woken for the next one alone."""
    native, mailbox = _native(), np.zeros(MAILBOX_WORDS, dtype=np.int64)
    at, (first, second) = mailbox.ctypes.data, nothing_to_walk(2)
    native.post(at, first.ctypes.data)
    native.finish(0, at, 1)
    assert native.serve(at, 10), "asleep"
    assert native.post(at, second.ctypes.data), "it must be woken"
    served = threading.Thread(target=native.serve, args=(at, 10))
    served.start()
    served.join(30)
    assert second[DONE] == 0
    # The end of a thread is told it as a job is.
    native.post(at, 0)
    assert not native.serve(at, 10)


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
