"""Devices, vector clocks, deadlock, interleavings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toys import all_interleavings, boxes

from irkit.errors import ScheduleError, UnsupportedError
from irkit.interp.interleave import Machine, interleave
from irkit.processors import usable_cores
from irkit.schedule.box_overlap import group_equal, meet, meeting_pairs
from irkit.schedule.devices import device, device_names, register_device
from irkit.schedule.happens_before import HappensBefore
from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule
from irkit.schedule.wavefront import schedule_wavefront


def empty_launches(*tasks: int) -> list[Launch]:
    return [Launch(f"n{i}", "toy", count, (), ()) for i, count in enumerate(tasks)]


def placed(tasks: list[int], *appends: Append) -> Schedule:
    return Schedule(device("test4"), [], empty_launches(*tasks), list(appends))


def test_registry() -> None:
    h200 = device("h200")
    assert (h200.veus, h200.threads, h200.shared_bytes) == (132, 256, 227 * 1024)
    assert device("test4").veus == 4
    assert device("cpu").veus == usable_cores()
    assert (device("cpu7").veus, device("cpu7").shared_bytes) == (7, 0)
    with pytest.raises(UnsupportedError, match=r"did you mean 'h200'.*cpuN"):
        device("h20")
    with pytest.raises(UnsupportedError, match="unknown device 'cpu0'"):
        device("cpu0")


def test_registering_a_device() -> None:
    register_device("two-of-them", replace(device("test4"), name="two-of-them", veus=2))
    assert device("two-of-them").veus == 2
    assert "two-of-them" in device_names()
    with pytest.raises(ValueError, match="already registered"):
        register_device("h200", device("test4"))


def task_order(order: HappensBefore, append_a: int, append_b: int) -> np.ndarray:
    """Matrix [tasks of a, tasks of b], from the clocks: whether a's rTask happens before b's."""
    a = order.schedule.appends[append_a]
    tasks = order.schedule.launches[a.launch].tasks
    veu = a.first_veu + np.arange(tasks) % a.veus
    return order.positions(append_a)[:, None] < order.starts(append_b)[:, veu].T


def append_before(order: HappensBefore, append_a: int, append_b: int) -> bool:
    """Whether all rTasks of one append finish before any of another starts."""
    return bool((order.first_start(append_b) >= order.last_end(append_a)).all())


def test_program_order_on_one_veu() -> None:
    order = HappensBefore(placed([1, 1], Append(0, 2, 1), Append(1, 2, 1)))
    assert order.before(0, 0, 1, 0)
    assert not order.before(1, 0, 0, 0)


def test_two_veus_are_unordered_without_a_wait() -> None:
    order = HappensBefore(placed([1, 1], Append(0, 0, 1), Append(1, 1, 1)))
    assert not order.before(0, 0, 1, 0)
    assert not append_before(order, 0, 1)


def test_waits_are_transitive() -> None:
    schedule = placed(
        [3, 1, 2],
        Append(0, 0, 3),
        Append(1, 3, 1, waits=(0,)),
        Append(2, 1, 2, waits=(1,)),
    )
    order = HappensBefore(schedule)
    assert append_before(order, 0, 2)
    assert task_order(order, 0, 2).all()


def test_rounds_of_one_append() -> None:
    """Five rTasks on two vEUs: 0, 2, 4 in this order on the one, 1, 3 on the other."""
    order = HappensBefore(placed([5], Append(0, 1, 2)))
    wanted = np.array([[j > i and (j - i) % 2 == 0 for j in range(5)] for i in range(5)])
    assert np.array_equal(task_order(order, 0, 0), wanted)
    assert order.starts(0).shape == (5, 4)
    assert order.positions(0).tolist() == [0, 0, 1, 1, 2]


def test_waits_on_later_appends_can_be_fine() -> None:
    schedule = placed([1, 1], Append(0, 0, 1, waits=(1,)), Append(1, 1, 1))
    assert HappensBefore(schedule).before(1, 0, 0, 0)


@pytest.mark.parametrize(
    ("appends", "message"),
    [
        ([Append(0, 0, 1, waits=(0,)), Append(1, 1, 1)], r"append 0 \('n0'\) on vEU 0 waits for"),
        ([Append(0, 0, 1, waits=(1,)), Append(1, 0, 1)], r"vEU 0 waits for append 1 \('n1'\)"),
        ([Append(0, 0, 1, waits=(1,)), Append(1, 1, 1, waits=(0,))], "vEU 1 waits for append 0"),
    ],
)
def test_deadlock_is_reported(appends: list[Append], message: str) -> None:
    schedule = placed([1, 1], *appends)
    with pytest.raises(ScheduleError, match=message):
        HappensBefore(schedule)
    with pytest.raises(ScheduleError, match="deadlock"):
        interleave(schedule, lambda a, t: None, np.random.default_rng(0))


def test_placement_outside_the_device() -> None:
    with pytest.raises(ScheduleError, match=r"vEUs 3\.\.4.*has vEUs 0\.\.3"):
        HappensBefore(placed([2], Append(0, 3, 2)))


@settings(max_examples=80, deadline=None)
@given(st.booleans(), st.randoms(use_true_random=False))
def test_clocks_against_all_interleavings(forward: bool, random) -> None:
    """One rTask happens before another exactly when it comes first in every legal order.

    With `forward`, waits may name later appends, and both sides agree on what deadlocks.
    """
    count = random.randint(1, 4)
    appends = []
    for number in range(count):
        first = random.randrange(4)
        waits = tuple(w for w in range(count if forward else number) if random.random() < 0.4)
        appends.append(Append(number, first, random.randint(1, 4 - first), waits=waits))
    schedule = placed([random.randint(1, 2) for _ in range(count)], *appends)
    try:
        order = HappensBefore(schedule)
    except ScheduleError:
        with pytest.raises(ScheduleError, match="deadlock"):
            list(all_interleavings(schedule))
        return
    always: dict[tuple, bool] = {}
    for steps in all_interleavings(schedule):
        for i, x in enumerate(steps):
            for j, y in enumerate(steps):
                always[x, y] = always.get((x, y), True) and i < j
    for (x, y), first in always.items():
        assert order.before(*x, *y) == first
        assert bool(task_order(order, x[0], y[0])[x[1], y[1]]) == first


def test_interleavings_are_legal_and_complete() -> None:
    schedule = placed([2, 1], Append(0, 0, 2), Append(1, 2, 1))
    found = {tuple(steps) for steps in all_interleavings(schedule)}
    assert len(found) == 6  # three independent rTasks
    assert len(list(all_interleavings(schedule, limit=4))) == 4
    waiting = replace(schedule, appends=[schedule.appends[0], Append(1, 2, 1, waits=(0,))])
    assert {tuple(steps) for steps in all_interleavings(waiting)} == {
        ((0, 0), (0, 1), (1, 0)),
        ((0, 1), (0, 0), (1, 0)),
    }
    machine = Machine(waiting)
    assert machine.ready() == [0, 1]


def test_random_interleavings_differ() -> None:
    schedule = placed([4], Append(0, 0, 4))
    seen = set()
    rng = np.random.default_rng(1)
    for _ in range(60):
        steps: list = []
        interleave(schedule, lambda a, t, s=steps: s.append((a, t)), rng)
        assert sorted(steps) == [(0, t) for t in range(4)]
        seen.add(tuple(steps))
    assert len(seen) > 10


def test_a_thousand_appends_are_quick() -> None:
    """1000 appends of 13 rTasks on 132 vEUs."""
    appends = [
        Append(n, (n % 10) * 13, 13, waits=tuple(w for w in (n - 10, n - 11) if w >= 0))
        for n in range(1000)
    ]
    schedule = Schedule(device("h200"), [], empty_launches(*[13] * 1000), appends)
    order = HappensBefore(schedule)
    assert append_before(order, 0, 999)


def test_malformed_accesses() -> None:
    buffer = Buffer("a", "arena", (4,), 4)
    outside = Launch("n", "toy", 1, (), (Access(0, boxes([(0, 5)])),))
    with pytest.raises(ScheduleError, match=r"box outside 'a' of shape \(4,\)"):
        schedule_wavefront([buffer], [outside], device("test4"))
    wrong = Launch("n", "toy", 2, (), (Access(0, boxes([(0, 4)])),))
    with pytest.raises(ScheduleError, match=r"shape \(1, 1, 2\), expected \(2, 1, 2\)"):
        schedule_wavefront([buffer], [wrong], device("test4"))
    view = Buffer("v", "arena", (4,), 4, parent=0, parent_offset=8)
    with pytest.raises(ScheduleError, match="'v' does not lie inside its parent 'a'"):
        schedule_wavefront([buffer, view], [], device("test4"))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans())
def test_the_sweep_finds_all_meeting_boxes(seed: int, rank: int, many: bool) -> None:
    """Against looking at all pairs; empty boxes meet nothing."""
    rng = np.random.default_rng(seed)
    count = 300 if many else 20
    a, b = (np.sort(rng.integers(0, 30, (count, rank, 2)), axis=2) for _ in range(2))
    found = meeting_pairs(a, b)
    assert sorted(zip(*(i.tolist() for i in found), strict=True)) == [
        (i, j) for i, j in np.argwhere(meet(a, b)).tolist()
    ]


@pytest.mark.parametrize("tasks", [5, 200])
def test_groups_of_equal_boxes(tasks: int) -> None:
    same = group_equal(boxes(*[[(0, 4)]] * tasks))
    assert (same.first.tolist(), same.last.tolist()) == ([0], [tasks - 1])
    pairs = np.array([[[t // 2, t // 2 + 1]] for t in range(tasks)])
    groups = group_equal(pairs)
    assert np.array_equal(pairs[groups.first][groups.of], pairs)
    assert len(groups.first) == (tasks if tasks <= 64 else tasks // 2)
    low, high = groups.lanes(2)
    assert np.array_equal(high - low, np.full(len(low), int(tasks > 64)))
