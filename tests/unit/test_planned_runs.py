"""Programs on the CPU and a GPU: the planned copies are what is copied, in any order that streams and events
allow, and the answer is NumPy's."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from irkit.dags.host_programs import HostProgramRunner
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.driver.programs.planned import computing
from irkit.errors import ScheduleError
from irkit.passes.host.actions import HostProgram
from irkit.passes.host.host_program import host_program
from irkit.passes.host.sharing import shared
from irkit.schedule.host.model import HOST as HOST_QUEUE
from irkit.schedule.host.model import HostPlan, Place
from irkit.schedule.host.verifier import verify
from tests.unit.on_both import Counting, functions_of, on_drawn_devices, planned_copies
from tools.fuzz.effects.attempt import HOST
from tools.fuzz.effects.programs import Program, random_program

SEEDS = range(60)


class Graphing(Counting):
    """It counts graphs too."""

    recorded = replayed = 0

    def graph(self, record: Callable[[], None], stream: Any) -> Any:
        self.recorded += 1
        return super().graph(record, stream)

    def replay(self, graph: Any, stream: Any) -> None:
        self.replayed += 1
        super().replay(graph, stream)


def drawn_program(seed: int) -> tuple[Program, BuiltProgram, ModuleOp]:
    program = random_program(random.Random(f"planned {seed}"), calls=seed % 3 != 0)
    built = program.build()
    return program, built, on_drawn_devices(built, seed)


def runner_of(
    built: BuiltProgram, module: ModuleOp, program: HostProgram, device: Counting
) -> HostProgramRunner:
    functions = HOST | functions_of(module, built.weights)
    own = computing(built.weights)
    return HostProgramRunner(
        program, device, functions, policy="disjoint", keep=True, computing=own
    )


def outcome(runner: HostProgramRunner, main: FuncOp, inputs: Sequence[Any]) -> list[Any]:
    """What is returned, and what is left in arguments that are written."""
    given = [np.array(x, order="C") for x in inputs]
    before = [x.copy() for x in given]
    ran = runner.execute(given)
    for array, old in zip(given, before, strict=True):
        assert array.tobytes() == old.tobytes(), "arguments stay as they are"
    return [*ran.results, *(ran.left.get(n, given[n]) for n in written_arguments(main))]


def expected_of(program: Program, inputs: Sequence[Any], main: FuncOp) -> list[Any]:
    found = program.expected([np.array(x) for x in inputs])
    count = len(program.returned)
    return [*found[:count], *(found[count + n] for n in written_arguments(main))]


def main_of(built: BuiltProgram) -> FuncOp:
    return next(f for f in built.module.ops if isinstance(f, FuncOp))


def same(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=a.dtype.kind == "f")
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_in_any_order(seed: int):
    """Twice, on other inputs: memory is taken once, and given back in the end."""
    program, built, module = drawn_program(seed)
    plain = host_program(module, keep_arguments=True)
    made = shared(plain)
    device, main = Counting(seed), main_of(built)
    runner = runner_of(built, module, made, device)
    assert runner.arrays_bytes <= sum(b.nbytes for b in plain.buffers if b.space == "device")
    once = planned_copies(made)
    for turn in (1, 2):
        inputs = program.inputs(seed + turn)
        device.scramble()
        device.copies.clear()
        assert same(outcome(runner, main, inputs), expected_of(program, inputs, main))
        assert device.copies == once
    assert device.allocated == sum(b.space == "device" for b in made.buffers)
    runner.close()
    assert device.used == 0


def test_there_are_programs_of_every_kind():
    """What the seeds have between them."""
    plans = [host_program(drawn_program(seed)[2], keep_arguments=True) for seed in SEEDS]
    kinds = [{task.kind for task in plan.tasks} for plan in plans]
    assert sum({"to_device", "to_host", "kernel", "function"} <= k for k in kinds) > 10
    assert any(t.name == "computed by the host" for p in plans for t in p.tasks)
    assert any(p.left for p in plans)
    assert any(b.name.endswith("_turn") for p in plans for b in p.buffers)
    saved = [len(p.buffers) - len(shared(p).buffers) for p in plans]
    assert sum(saved) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_on_the_same_memory_are_graphs(seed: int):
    """The first goes task by task, the second is recorded; arrays' contents count, not which they were."""
    program, built, module = drawn_program(seed)
    device, main = Graphing(seed), main_of(built)
    made = shared(host_program(module, keep_arguments=True))
    runner = runner_of(built, module, made, device)
    alone = all(place.queue != HOST_QUEUE for place in runner.plan.places)
    kept = [np.array(x, order="C") for x in program.inputs(seed)]
    for turn in range(6):
        inputs = program.inputs(seed + turn)
        for array, new in zip(kept, inputs, strict=True):
            array[...] = new
        device.scramble()
        ran = runner.execute(kept)
        found = [*ran.results, *(ran.left.get(n, kept[n]) for n in written_arguments(main))]
        assert same(found, expected_of(program, inputs, main))
        del ran, found
    moved = alone and runner.plan.queues > 1 and bool(made.arguments)
    assert (device.recorded, device.replayed) == ((1, 5) if moved else (0, 0))
    # Other arrays, and then as many as there are graphs kept.
    for turn in range(8):
        inputs = program.inputs(seed + turn)
        assert same(outcome(runner, main, inputs), expected_of(program, inputs, main))
    runner.close()
    assert device.used == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_no_wait_may_be_dropped(seed: int):
    _, built, module = drawn_program(seed)
    made = shared(host_program(module, keep_arguments=True))
    plan = runner_of(built, module, made, Counting()).plan
    for number, place in enumerate(plan.places):
        for wait in place.waits:
            places = list(plan.places)
            places[number] = Place(place.queue, tuple(w for w in place.waits if w != wait))
            with pytest.raises(ScheduleError, match="race"):
                verify(HostPlan(plan.buffers, plan.tasks, places))


def test_dropped_transfers_are_seen():
    """Of random programs much of what is copied is overwritten unread; `test_jit_on_both.py` has a program of
    which every copy matters."""
    seen = 0
    for seed in SEEDS:
        program, built, module = drawn_program(seed)
        main, inputs = main_of(built), program.inputs(seed)
        expected = expected_of(program, inputs, main)
        for number in range(sum(isinstance(op, memref.CopyOp) for op in module.walk())):
            mutant = module.clone()
            victim = [op for op in mutant.walk() if isinstance(op, memref.CopyOp)][number]
            Rewriter.erase_op(victim)
            made = host_program(mutant, keep_arguments=True)
            runner = runner_of(built, mutant, made, Counting(seed))
            seen += not same(outcome(runner, main, inputs), expected)
    assert seen > 80
