"""The wavefront policy and the waits, on programs small enough to say what is right."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_toys import boxes, cut, split, whole

from irkit.errors import ScheduleError
from irkit.schedule.devices import device
from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule, VDevice
from irkit.schedule.planner import plan_memory
from irkit.schedule.residents import pin_residents
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.waits import derive_waits
from irkit.schedule.wavefront import schedule_wavefront

TEST4 = device("test4")


class Program:
    """A little builder: each call adds a launch that writes a new buffer of `size` elements."""

    def __init__(self, size: int = 12) -> None:
        self.size = size
        self.buffers = [Buffer("x", "input", (size,), 8)]
        self.launches: list[Launch] = []

    def constant(self, shape: tuple[int, ...]) -> int:
        self.buffers.append(Buffer(f"w{len(self.buffers)}", "constant", shape, 8))
        return len(self.buffers) - 1

    def launch(
        self, *reads: int, tasks: int = 1, local: bool = False, cost: float = 1000.0, **more
    ):
        make = split if local else whole
        self.buffers.append(Buffer(f"b{len(self.buffers)}", "arena", (self.size,), 8))
        out = len(self.buffers) - 1
        accesses = [Access(r, make(self.buffers[r].shape, tasks)) for r in reads]
        self.launches.append(
            Launch(
                f"n{len(self.launches)}",
                "toy",
                tasks,
                (*accesses, *more.pop("extra", ())),
                (Access(out, split((self.size,), tasks)),),
                cost,
                **more,
            )
        )
        return out

    def schedule(self, target: VDevice = TEST4) -> Schedule:
        schedule = schedule_wavefront(self.buffers, self.launches, target)
        verify_schedule(plan_memory(schedule))
        return schedule


def ranges(schedule: Schedule) -> dict[int, tuple[int, int]]:
    return {a.launch: (a.first_veu, a.veus) for a in schedule.appends}


def waves(schedule: Schedule) -> dict[int, int]:
    return {a.launch: a.wave for a in schedule.appends}


def test_independent_launches_lie_side_by_side() -> None:
    program = Program()
    for _ in range(2):
        program.launch(0, tasks=2)
    schedule = program.schedule()
    assert sorted(ranges(schedule).values()) == [(0, 2), (2, 2)]
    assert set(waves(schedule).values()) == {0}
    assert all(append.waits == () for append in schedule.appends)


def test_a_local_chain_stays_and_needs_no_wait() -> None:
    program = Program()
    last = program.launch(0, tasks=3, local=True)
    for _ in range(4):
        last = program.launch(last, tasks=3, local=True)
    schedule = program.schedule()
    assert set(ranges(schedule).values()) == {(0, 3)}
    assert all(append.waits == () for append in schedule.appends)


def test_a_chain_that_mixes_needs_each_wait() -> None:
    program = Program()
    last = program.launch(0, tasks=3)
    for _ in range(3):
        last = program.launch(last, tasks=3)
    schedule = program.schedule()
    assert [append.waits for append in schedule.appends] == [(), (0,), (1,), (2,)]


def test_implied_waits_are_pruned() -> None:
    """n2 reads n0 and n1, but n1 already waits for n0."""
    program = Program()
    first = program.launch(0, tasks=2)
    second = program.launch(first, tasks=4)
    program.launch(first, second, tasks=3)
    schedule = program.schedule()
    assert [append.waits for append in schedule.appends] == [(), (0,), (1,)]


def test_layers_wider_than_the_device_are_split_or_shared() -> None:
    """Six launches of one rTask take two waves; two launches of eight rTasks share the device."""
    program = Program()
    for _ in range(6):
        program.launch(0)
    assert sorted(waves(program.schedule()).values()) == [0, 0, 0, 0, 1, 1]
    program = Program()
    for _ in range(2):
        program.launch(0, tasks=8)
    schedule = program.schedule()
    assert sorted(ranges(schedule).values()) == [(0, 2), (2, 2)]
    assert set(waves(schedule).values()) == {0}


def test_room_left_by_a_split_is_filled() -> None:
    """Five one-rTask launches leave three vEUs in the second wave; what reads the first goes there."""
    program = Program()
    first = [program.launch(0, cost=900.0 - n) for n in range(5)]
    program.launch(first[0], cost=1.0)
    schedule = program.schedule()
    assert waves(schedule)[4] == 1
    assert waves(schedule)[5] == 1


def test_waves_never_contain_a_dependence() -> None:
    program = Program()
    rng = np.random.default_rng(3)
    made = [0]
    for _ in range(40):
        reads = rng.choice(made, size=min(2, len(made)), replace=False)
        made.append(program.launch(*map(int, reads), tasks=int(rng.integers(1, 6))))
    schedule = program.schedule()
    for append in schedule.appends:
        assert all(schedule.appends[w].wave < append.wave for w in append.waits)


def test_the_critical_path_goes_first() -> None:
    """n0 is alone; n1 heads a chain, so it is appended first."""
    program = Program()
    program.launch(0, tasks=4)
    program.launch(program.launch(0, tasks=4), tasks=4)
    schedule = program.schedule()
    assert schedule.appends[0].launch == 1


def test_readers_of_one_constant_keep_their_veus() -> None:
    program = Program()
    weights = [program.constant((4, 64)) for _ in range(2)]

    def cell(weight: int, *reads: int) -> int:
        access = Access(weight, split((4, 64), 2, axis=0))
        return program.launch(*reads, tasks=2, extra=(access,))

    low, high = cell(weights[0], 0), 0
    for _ in range(5):
        low, high = cell(weights[0], low), cell(weights[1], low, high)
    schedule = pin_residents(program.schedule())
    used: dict[int, set[tuple[int, int]]] = {}
    for append in schedule.appends:
        weight = schedule.launches[append.launch].reads[-1].buffer
        used.setdefault(weight, set()).add((append.first_veu, append.veus))
        assert [r.operand for r in append.residents] == [
            len(schedule.launches[append.launch].reads) - 1
        ]
    assert used == {weights[0]: {(0, 2)}, weights[1]: {(2, 2)}}
    verify_schedule(plan_memory(schedule))


def test_writes_after_reads_wait_too() -> None:
    """n1 reads what n0 wrote; n2 overwrites it in place."""
    buffers = [Buffer("a", "arena", (4,), 8), Buffer("b", "arena", (4,), 8)]
    one = whole((4,), 1)
    launches = [
        Launch("n0", "toy", 1, (), (Access(0, one),)),
        Launch("n1", "toy", 1, (Access(0, one),), (Access(1, one),)),
        Launch("n2", "toy", 1, (), (Access(0, one),)),
    ]
    appends = [Append(0, 0, 1), Append(1, 1, 1), Append(2, 2, 1)]
    schedule = derive_waits(Schedule(TEST4, buffers, launches, appends))
    assert [append.waits for append in schedule.appends] == [(), (0,), (1,)]


def test_boxes_decide_about_waits() -> None:
    """The two halves of one buffer are written and read independently."""
    buffers = [Buffer("a", "arena", (4,), 8), Buffer("o", "output", (4,), 8)]
    left, right = boxes([(0, 2)]), boxes([(2, 4)])
    launches = [
        Launch("n0", "toy", 1, (), (Access(0, left),)),
        Launch("n1", "toy", 1, (), (Access(0, right),)),
        Launch("n2", "toy", 1, (Access(0, right),), (Access(1, right),)),
    ]
    appends = [Append(n, n, 1) for n in range(3)]
    schedule = derive_waits(Schedule(TEST4, buffers, launches, appends))
    assert schedule.appends[2].waits == (1,)


def test_shares_of_different_counts_are_compared_as_fractions() -> None:
    """Share 1 of 2 meets shares 1 and 2 of 3, not share 0."""
    buffers = [Buffer("a", "rows", (-1, 1), 8), Buffer("b", "rows", (-1, 1), 8)]
    halves, thirds = split((2, 1), 2, axis=0), split((3, 1), 3, axis=0)
    launches = [
        Launch("n0", "toy", 3, (), (Access(0, thirds),)),
        Launch("n1", "toy", 2, (Access(0, halves),), (Access(1, halves),)),
    ]
    apart = Schedule(TEST4, buffers, launches, [Append(0, 0, 3), Append(1, 2, 2)])
    assert derive_waits(apart).appends[1].waits == (0,)
    third = Launch("n1", "toy", 3, (Access(0, thirds),), (Access(1, thirds),))
    same = Schedule(TEST4, buffers, [launches[0], third], [Append(0, 0, 3), Append(1, 0, 3)])
    assert derive_waits(same).appends[1].waits == ()


def test_appends_against_program_order_are_refused() -> None:
    buffers = [Buffer("a", "arena", (4,), 8), Buffer("b", "arena", (4,), 8)]
    one = whole((4,), 1)
    launches = [
        Launch("n0", "toy", 1, (), (Access(0, one),)),
        Launch("n1", "toy", 1, (Access(0, one),), (Access(1, one),)),
    ]
    wrong = Schedule(TEST4, buffers, launches, [Append(1, 0, 1), Append(0, 0, 1)])
    with pytest.raises(ScheduleError, match=r"append 1 \('n0'\) must come before append 0"):
        derive_waits(wrong)


def test_an_empty_program() -> None:
    schedule = plan_memory(pin_residents(schedule_wavefront([], [], TEST4)))
    verify_schedule(schedule)
    assert schedule.notes["waves"] == 0
    assert schedule.notes["arena_ratio"] == 1.0


def test_one_veu_needs_no_waits() -> None:
    program = Program()
    last = 0
    for _ in range(5):
        last = program.launch(last, tasks=3)
    schedule = program.schedule(device("cpu1"))
    assert all(append.waits == () for append in schedule.appends)


def test_cut_covers() -> None:
    assert cut(5, 2) == [(0, 2), (2, 5)]


def test_many_rtasks_are_quick() -> None:
    """A chain of maps of 8192 rTasks: conflicts are found by a sweep, not pair by pair."""
    tasks = 8192
    buffers = [Buffer("x", "input", (tasks, 64), 4)]
    launches = []
    for number in range(5):
        buffers.append(Buffer(f"b{number}", "arena", (tasks, 64), 4))
        own = split((tasks, 64), tasks, axis=0)
        launches.append(
            Launch(f"n{number}", "map", tasks, (Access(number, own),), (Access(number + 1, own),))
        )
    schedule = plan_memory(schedule_wavefront(buffers, launches, device("h200")))
    verify_schedule(schedule)
    assert all(append.waits == () for append in schedule.appends)
