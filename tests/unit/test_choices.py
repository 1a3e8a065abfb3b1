"""Which of its options a launch is run by: alone, in company, and with constants that should stay."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from schedule_toys import split, whole
from xdsl.dialects.builtin import ModuleOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import ADDED, register_dialects
from irkit.errors import ScheduleError, UnsupportedError
from irkit.extending import add_policy
from irkit.passes import PASSES
from irkit.schedule.allotments import Allotment, Speedup, side_by_side
from irkit.schedule.devices import device
from irkit.schedule.few_options import with_few_options
from irkit.schedule.model import Access, Append, Buffer, Launch, Option, Schedule, VDevice
from irkit.schedule.planner import plan_memory
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.wavefront import schedule_wavefront

TEST4 = device("test4")
H200 = device("h200")
# The fastest alone is the worst together: two launches of it take 2 * 3100 ns, of the second 4100.
ALONE_AND_TOGETHER = {4: 3000.0, 2: 4000.0, 1: 9000.0}
SIZE = 12


class Program:
    """Launches that each write a buffer of their own, with options by number of rTasks."""

    def __init__(self, target: VDevice = TEST4) -> None:
        self.target = target
        self.buffers = [Buffer("x", "input", (SIZE,), 8)]
        self.launches: list[Launch] = []
        self.asked: list[tuple[str, int]] = []

    def constant(self, nbytes: int) -> int:
        self.buffers.append(Buffer("w", "constant", (nbytes // 8,), 8))
        return len(self.buffers) - 1

    def launch(
        self, read: int, costs: dict[int, float], constant: int | None = None, symbol: str = "op"
    ) -> int:
        name = f"n{len(self.launches)}"
        self.buffers.append(Buffer(f"b{name}", "arena", (SIZE,), 8))
        out, reads = len(self.buffers) - 1, [read, *([] if constant is None else [constant])]

        def boxes(tasks: int) -> list[np.ndarray]:
            self.asked.append((name, tasks))
            shapes = [self.buffers[r].shape for r in reads]
            parts = [whole(shapes[0], tasks), *(split(shape, tasks) for shape in shapes[1:])]
            return [*parts, split((SIZE,), tasks)]

        options = tuple(
            Option(tasks, cost, 0, lambda tasks=tasks: boxes(tasks))
            for tasks, cost in costs.items()
        )
        first = boxes(next(iter(costs)))
        self.launches.append(
            Launch(
                name,
                symbol,
                options[0].tasks,
                tuple(Access(r, b) for r, b in zip(reads, first, strict=False)),
                (Access(out, first[-1]),),
                options[0].cost_ns,
                options=options,
                whole=lambda: boxes(1),
            )
        )
        self.asked.clear()
        return out

    def schedule(self) -> Schedule:
        schedule = schedule_wavefront(self.buffers, self.launches, self.target)
        verify_schedule(plan_memory(schedule))
        return schedule


def tasks(schedule: Schedule) -> list[int]:
    return [launch.tasks for launch in schedule.launches]


def test_a_lone_launch_takes_the_fastest() -> None:
    program = Program()
    program.launch(0, ALONE_AND_TOGETHER)
    schedule = program.schedule()
    assert tasks(schedule) == [4]
    assert schedule.launches[0].option == 0
    assert schedule.launches[0].cost_ns == 3000.0
    assert schedule.notes["estimate_ns"] == 3000.0


def test_the_fastest_alone_is_the_worst_together() -> None:
    program = Program()
    for _ in range(2):
        program.launch(0, ALONE_AND_TOGETHER)
    schedule = program.schedule()
    assert tasks(schedule) == [2, 2]
    assert {append.wave for append in schedule.appends} == {0}
    assert schedule.notes["estimate_ns"] == 4000.0


def test_one_roperator_in_different_company_gets_different_choices() -> None:
    """First one alone, then two, then four beside each other."""
    program, costs = Program(), {4: 3000.0, 2: 4000.0, 1: 7000.0}
    last = program.launch(0, costs)
    for _ in range(2):
        second = program.launch(last, costs)
    for _ in range(4):
        program.launch(second, costs)
    assert tasks(program.schedule()) == [4, 2, 2, 1, 1, 1, 1]


def test_what_divides_badly_takes_turns() -> None:
    """Three of four rTasks each: side by side one has two vEUs, and the others end after 16 us."""
    program = Program()
    for _ in range(3):
        program.launch(0, {4: 4000.0})
    schedule = program.schedule()
    assert sorted(append.wave for append in schedule.appends) == [0, 1, 1]
    assert sorted(append.veus for append in schedule.appends) == [2, 2, 4]
    assert schedule.notes["estimate_ns"] == 12_000.0


def test_only_what_is_chosen_is_looked_at() -> None:
    """Boxes of the launch as one rTask, for the dependences, and of the option that it is run by."""
    program = Program()
    for _ in range(2):
        program.launch(0, ALONE_AND_TOGETHER)
    schedule_wavefront(program.buffers, program.launches, TEST4)
    assert sorted(program.asked) == [("n0", 1), ("n0", 2), ("n1", 1), ("n1", 2)]


def test_readers_of_one_constant_are_run_alike() -> None:
    """Two cells share the device after a step of one alone. That one could be wider, but is not if the
    weights are to stay."""
    costs = {4: 9000.0, 2: 16_000.0, 1: 31_000.0}
    for nbytes, wanted in ((32_768, {2}), (80, {4, 2})):
        program = Program()
        weights = [program.constant(nbytes) for _ in range(2)]
        low = program.launch(0, costs, weights[0])
        for _ in range(4):
            high, low = (
                program.launch(low, costs, weights[1]),
                program.launch(low, costs, weights[0]),
            )
        schedule = program.schedule()
        first = schedule.launches[0].reads[1].buffer
        found = {n.tasks for n in schedule.launches if n.reads[1].buffer == first}
        assert found == wanted
        assert high


def test_shares_of_a_batch_keep_their_veus() -> None:
    """Two branches: side by side on half of the vEUs each, what reads both would have to wait."""
    buffers = [Buffer(name, "rows", (-1, 4), 8) for name in "abcd"]
    buffers[0] = Buffer("x", "input", (-1, 4), 8)
    each = split((4, 4), 4, axis=0)

    def launch(reads: tuple[int, ...], write: int) -> Launch:
        accesses = tuple(Access(r, each) for r in reads)
        return Launch(f"n{write}", "op", 4, accesses, (Access(write, each),))

    launches = [launch((0,), 1), launch((0,), 2), launch((1, 2), 3)]
    schedule = schedule_wavefront(buffers, launches, TEST4)
    assert {(append.first_veu, append.veus) for append in schedule.appends} == {(0, 4)}
    assert all(append.waits == () for append in schedule.appends)


def test_few_options_do() -> None:
    """An rKernel of 14 rTasks that is 7 % faster than one of 13 is not compiled beside it."""
    program = Program(H200)
    for _ in range(3):
        program.launch(0, {132: 2000.0, 14: 9300.0, 13: 10_000.0})
    near = [Allotment(2, 13, 10_000.0), Allotment(1, 14, 9300.0), Allotment(2, 13, 10_000.0)]
    assert with_few_options(program.launches, near) == [Allotment(2, 13, 10_000.0)] * 3
    far = [Allotment(0, 132, 2000.0), Allotment(1, 14, 9300.0), Allotment(1, 14, 9300.0)]
    assert with_few_options(program.launches, far) == far


@pytest.mark.parametrize("seed", range(20))
def test_the_last_ends_as_soon_as_can_be(seed: int) -> None:
    """Against all divisions of a small device."""
    rng = np.random.default_rng(seed)
    made: list[Speedup] = []
    for _ in range(int(rng.integers(1, 5))):
        counts = rng.choice(np.arange(1, 9), int(rng.integers(1, 4)), replace=False).tolist()
        made.append(Speedup.of(counts, rng.uniform(10, 1e4, len(counts)).tolist(), TEST4))
    found = side_by_side(made, 4)
    assert sum(a.veus for a in found) <= 4

    def least(members: list[Speedup], veus: int) -> float:
        if not members:
            return 0.0
        tries = range(1, veus - len(members) + 2)
        return min(max(members[0].on(v).time, least(members[1:], veus - v)) for v in tries)

    assert max(a.time for a in found) == least(made, 4)


def test_steps_are_the_fastest_on_each_number_of_veus() -> None:
    counts, costs = [1, 2, 3, 8], [9000.0, 4000.0, 3900.0, 1000.0]
    speedup = Speedup.of(counts, costs, TEST4)
    assert [(s.option, s.veus) for s in speedup.steps] == [(1, 1), (1, 2), (3, 3), (3, 4)]
    assert speedup.alone.time == 2 * 1000.0 + TEST4.wait_ns
    for veus in range(1, 5):
        times = [
            math.ceil(n / veus) * c + (n > 1) * TEST4.wait_ns
            for n, c in zip(counts, costs, strict=True)
        ]
        assert speedup.on(veus).time == min(times)
    within = speedup.within(speedup.on(2).time)
    assert within is not None
    assert within.veus == 2
    assert speedup.within(1.0) is None


MODULE = """
!t = tensor<SxSxf32>
func.func @main(%x: !t, %w: !t, %v: !t) -> (!t, !t) {
  %0 = graph.matmul %x, %w : (!t, !t) -> !t
  %1 = graph.matmul %0, %w : (!t, !t) -> !t
  %2 = graph.matmul %1, %w : (!t, !t) -> !t
  %a = graph.matmul %0, %v : (!t, !t) -> !t
  func.return %2, %a : !t, !t
}
""".replace("S", "48")


def scheduled(policy: str = "wavefront") -> ModuleOp:
    ctx, module = IrkitContext(), irkit.parse(MODULE)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, "cpu2", policy=policy)
    return module


def grids(module: ModuleOp) -> list[int]:
    """rTasks of each launch, in order."""
    known = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
    assert all(op.alternatives is None for op in known.values())
    launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
    return [known[op.callee.string_value()].tasks for op in launches]


def test_a_program_of_one_roperator_becomes_one_of_two() -> None:
    """Equal matrix products: one after another on both vEUs, and two side by side."""
    module = scheduled()
    assert grids(module) == [2, 1, 2, 1]
    names = [op.sym_name.data for op in module.ops if isinstance(op, ROperatorOp)]
    assert names == ["gemm_0", "gemm_0_1"]


@pytest.fixture
def own_policies() -> Iterator[None]:
    """What a test adds is gone behind it."""
    before = [(table, dict(table)) for table in (PASSES, ADDED)]
    yield
    for table, kept in before:
        table.clear()
        table.update(kept)


@pytest.mark.usefixtures("own_policies")
def test_a_policy_from_outside_chooses_or_leaves_it() -> None:
    offered: list[int] = []

    def narrow(buffers, launches, target):
        """The option of the fewest rTasks, all on the first vEU."""
        offered.extend(len(launch.options) for launch in launches)
        made = [launch.choose(len(launch.options) - 1) for launch in launches]
        return Schedule(target, list(buffers), made, [Append(n, 0, 1, n) for n in range(len(made))])

    def silent(buffers, launches, target):
        """Choose nothing."""
        appends = [Append(n, 0, min(o.tasks, target.veus), n) for n, o in enumerate(launches)]
        return Schedule(target, list(buffers), list(launches), appends)

    add_policy("narrow", narrow)
    add_policy("silent", silent)
    assert grids(scheduled("narrow")) == [1, 1, 1, 1]
    assert grids(scheduled("silent")) == [2, 2, 2, 2]
    assert offered == [2, 2, 2, 2]


@pytest.mark.usefixtures("own_policies")
def test_a_policy_that_chooses_what_there_is_not_is_refused() -> None:
    def wrong(buffers, launches, target):
        """Claim an option that was not offered."""
        made = [replace(launch, option=7) for launch in launches]
        return Schedule(target, list(buffers), made, [Append(n, 0, 1, n) for n in range(len(made))])

    def short(buffers, launches, target):
        """Lose a launch."""
        return Schedule(target, list(buffers), list(launches[1:]), [])

    add_policy("wrong", wrong)
    add_policy("short", short)
    with pytest.raises(
        (ScheduleError, UnsupportedError), match="'gemm_0#0' has 2 options, none is"
    ):
        scheduled("wrong")
    with pytest.raises((ScheduleError, UnsupportedError), match="4 launches were given, 3 are"):
        scheduled("short")
