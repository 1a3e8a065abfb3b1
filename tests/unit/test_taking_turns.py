"""Threads that take turns: all come to their end, or it is told who does not."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest
from taking_turns import Barrier, Crew, StuckError, Workers


def order(seed: int, threads: int = 8, rounds: int = 20) -> list[tuple[int, int]]:
    """Who ran when, by (round, thread)."""
    crew, found = Crew(seed), list[tuple[int, int]]()
    barrier = Barrier(crew, threads)

    def work(number: int) -> None:
        for n in range(rounds):
            found.append((n, number))
            barrier.wait()

    crew.run([functools.partial(work, n) for n in range(threads)])
    return found


def test_nobody_passes_a_barrier_before_all_have_come() -> None:
    found = order(0)
    assert [n for n, _ in found] == [n for n in range(20) for _ in range(8)]
    assert all({t for n, t in found if n == m} == set(range(8)) for m in range(20))


def test_the_order_is_that_of_the_seed() -> None:
    assert order(1) == order(1) != order(2)
    assert len({tuple(t for n, t in order(3) if n == m) for m in range(20)}) > 10


def test_groups_run_far_ahead_of_others() -> None:
    crew, done, most = Crew(), [0, 0], list[int]()
    barriers = [Barrier(crew, 2), Barrier(crew, 2)]

    def work(group: int) -> None:
        for _ in range(100):
            barriers[group].wait()
            done[group] += 1
            most.append(abs(done[0] - done[1]))

    crew.run([functools.partial(work, n // 2) for n in range(4)])
    assert done == [200, 200]
    assert max(most) > 20


def test_a_barrier_that_not_all_reach_is_told() -> None:
    crew = Crew()
    barrier = Barrier(crew, 4)

    def work(number: int) -> None:
        if number:
            barrier.wait()

    with pytest.raises(StuckError, match="3 threads wait"):
        crew.run([functools.partial(work, n) for n in range(4)])


def test_what_one_raises_ends_all() -> None:
    crew, ended = Crew(), list[int]()
    barrier = Barrier(crew, 4)

    def work(number: int) -> Any:
        if number == 2:
            raise ZeroDivisionError
        barrier.wait()
        ended.append(number)

    with pytest.raises(ZeroDivisionError):
        crew.run([functools.partial(work, n) for n in range(4)])
    assert not ended


def test_sleepers_go_on_when_they_are_woken() -> None:
    crew, said = Crew(), list[str]()
    sleepers: list[Any] = []
    ready = Barrier(crew, 2)

    def waits() -> None:
        while "go" not in said:
            crew.sleep(sleepers)
        said.append("gone")

    def wakes() -> None:
        ready.wait()
        said.append("go")
        crew.wake(sleepers)

    crew.run([waits, wakes, ready.wait])
    assert said == ["go", "gone"]


def test_threads_are_kept_and_end() -> None:
    workers, threads = Workers(), set[threading.Thread]()
    for _ in range(5):
        crew = Crew()
        barrier = Barrier(crew, 4)

        def work(barrier: Barrier) -> None:
            threads.add(threading.current_thread())
            barrier.wait()

        crew.run([functools.partial(work, barrier)] * 4, workers)
    # The last to end may not be back when the next crew begins.
    assert len(threads) <= 8
    workers.end()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
