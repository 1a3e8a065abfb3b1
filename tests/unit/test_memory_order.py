"""Orders for memory: against all orders at small sizes, and as schedules that are proved."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toys import whole

from benchmarks import memory
from irkit.schedule.dependences import dependences
from irkit.schedule.devices import device
from irkit.schedule.footprint import Footprints
from irkit.schedule.memory_order import order_for_memory
from irkit.schedule.memory_policy import place_for_memory
from irkit.schedule.model import Access, Buffer, Launch
from irkit.schedule.planner import plan_memory
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.waits import wait_in_line
from irkit.schedule.wavefront import schedule_wavefront


def program(rng: np.random.Generator, count: int) -> tuple[list[Buffer], list[Launch]]:
    """Each launch writes a buffer, and reads up to two earlier ones; the last all that are left."""
    buffers, launches, unread = [], [], set()
    for number in range(count):
        size = int(rng.integers(1, 9)) * 256
        reads = {int(n) for n in rng.integers(0, number, min(number, 2))} if number else set()
        if number == count - 1:
            reads |= unread
        unread = (unread - reads) | {number}
        space = "output" if number == count - 1 else "arena"
        buffers.append(Buffer(f"b{number}", space, (size,), 1))
        accesses = tuple(Access(n, whole(buffers[n].shape, 1)) for n in sorted(reads))
        launches.append(
            Launch(f"n{number}", "toy", 1, accesses, (Access(number, whole((size,), 1)),))
        )
    return buffers, launches


def live_peak(buffers: list[Buffer], launches: list[Launch], order: tuple[int, ...]) -> int:
    """By looking at every moment: what is written by now and still to be read, or in use by the launch."""
    place = {launch: at for at, launch in enumerate(order)}
    peak = 0
    for now in range(len(order)):
        live = 0
        for number, buffer in enumerate(buffers):
            uses = [
                place[n]
                for n, launch in enumerate(launches)
                if any(a.buffer == number for a in (*launch.reads, *launch.writes))
            ]
            if buffer.space == "arena" and min(uses) <= now <= max(uses):
                live += buffer.nbytes
        peak = max(peak, live)
    return peak


def legal(launches: list[Launch], order: tuple[int, ...]) -> bool:
    done: set[int] = set()
    for number in order:
        if any(a.buffer not in done for a in launches[number].reads):
            return False
        done.add(number)
    return True


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_no_order_needs_less(seed: int, count: int) -> None:
    buffers, launches = program(np.random.default_rng(seed), count)
    found = order_for_memory(buffers, launches, dependences(Footprints(buffers, launches)))
    orders = [o for o in itertools.permutations(range(count)) if legal(launches, o)]
    assert legal(launches, found.launches)
    assert found.given == live_peak(buffers, launches, tuple(range(count)))
    assert found.peak == live_peak(buffers, launches, found.launches)
    assert found.peak == min(live_peak(buffers, launches, o) for o in orders)
    assert found.exact


@pytest.mark.parametrize("name", ["cpu4", "test4"])
@pytest.mark.parametrize("seed", range(2))
def test_never_worse_and_proved(seed: int, name: str) -> None:
    """The plan needs what is in use at once, no more than in the given order, nor than side by side."""
    buffers, launches = program(np.random.default_rng(seed), 40)
    made = wait_in_line(place_for_memory(buffers, launches, device(name)))
    assert made.notes["live_bytes"] <= made.notes["given_live_bytes"]
    planned = plan_memory(made)
    verify_schedule(planned)
    assert planned.notes["arena_lower_bound"] == made.notes["live_bytes"]
    assert (
        planned.arena_bytes
        <= plan_memory(schedule_wavefront(buffers, launches, device(name))).arena_bytes
    )


def test_large_values_are_used_up_before_others_are_made() -> None:
    """Four long buffers, each of which comes to a short one: one after another, not all first."""
    buffers = [Buffer(f"long{n}", "arena", (4096,), 1) for n in range(4)]
    buffers += [Buffer(f"short{n}", "arena", (256,), 1) for n in range(4)]
    buffers.append(Buffer("sum", "output", (256,), 1))
    launches = [Launch(f"make{n}", "toy", 1, (), (_all(buffers, n),)) for n in range(4)]
    launches += [
        Launch(f"reduce{n}", "toy", 1, (_all(buffers, n),), (_all(buffers, 4 + n),))
        for n in range(4)
    ]
    reads = tuple(_all(buffers, 4 + n) for n in range(4))
    launches.append(Launch("sum", "toy", 1, reads, (_all(buffers, 8),)))
    found = order_for_memory(buffers, launches, dependences(Footprints(buffers, launches)))
    assert (found.peak, found.given, found.exact) == (4096 + 4 * 256, 4 * 4096 + 256, True)


def _all(buffers: list[Buffer], number: int) -> Access:
    return Access(number, whole(buffers[number].shape, 1))


def test_the_courses_perceptron_needs_less_than_in_its_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A training step, by both policies; reordered, it needs less."""
    found = memory.mlp()
    assert found["memory"]["bytes"] < found["wavefront"]["bytes"] <= memory.COURSE
    assert all(one["arena"] == one["arena_lower_bound"] for one in found.values())
    assert "perceptron" in capsys.readouterr().out
