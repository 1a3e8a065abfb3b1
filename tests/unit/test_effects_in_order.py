"""Reads and writes of arrays, counters of random numbers, and calls of the host: in the order of the program,
on random programs held against NumPy, one step after another."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from test_planned_runs import expected_of, main_of, outcome, same

from irkit.dialects.program.builder import BuiltProgram
from irkit.errors import ScheduleError
from irkit.passes.host.host_program import host_program
from irkit.passes.host.sharing import shared
from irkit.schedule.host.model import HostPlan, Place
from irkit.schedule.host.verifier import verify
from tests.unit.on_both import Counting, functions_of, on_drawn_devices
from tools.fuzz.effects.attempt import Expected, disagreement, noted
from tools.fuzz.effects.programs import HOST, Draw, Note, Program, random_program

CHUNKS, CHUNK = 20, 50
PLANNED = range(60)


def drawn(name: str, seed: int) -> Program:
    return random_program(random.Random(f"{name} {seed}"), calls=seed % 4 != 0, effects=True)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_do_what_numpy_does_and_in_its_order(chunk: int) -> None:
    """As text, in regions, as values, and in parts on devices that are drawn."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        program = drawn("order", seed)
        assert disagreement(program, seed) is None, str(program.build().module)


def test_there_are_random_numbers_and_callbacks_in_loops_too() -> None:
    texts = [str(drawn("order", seed).build().module) for seed in range(200)]
    assert sum("graph.threefry" in t for t in texts) > 50
    assert sum("@note" in t for t in texts) > 50
    in_loops = [t for t in texts if "scf.for" in t and "@note" in t.partition("scf.for")[2]]
    assert len(in_loops) > 10


def runner_of(built: BuiltProgram, module: Any, seed: int) -> Any:
    from irkit.dags.host_programs import HostProgramRunner
    from irkit.driver.programs.planned import computing

    made = shared(host_program(module, keep_arguments=True))
    functions = HOST | functions_of(module, built.weights)
    own = computing(built.weights)
    return HostProgramRunner(
        made, Counting(seed), functions, policy="disjoint", keep=True, computing=own
    )


@pytest.mark.parametrize("seed", PLANNED)
def test_proved_plans_keep_the_order_whatever_streams_do(seed: int) -> None:
    """Twice: a device whose streams go on in any order that events allow."""
    program = drawn("plans", seed)
    built = program.build()
    module, main = on_drawn_devices(built, seed), main_of(built)
    runner = runner_of(built, module, seed)
    for turn in (1, 2):
        inputs = program.inputs(seed + turn)
        expected = Expected(*noted(lambda x=inputs: expected_of(program, x, main)))
        found, notes = noted(lambda x=inputs: outcome(runner, main, x))
        assert same(found, expected.results)
        assert [n.tobytes() for n in notes] == [n.tobytes() for n in expected.notes]
    runner.close()


def test_a_plan_that_does_not_wait_is_not_proved() -> None:
    """Every wait is there for a conflict: without it something is a race."""
    waits = 0
    for seed in PLANNED:
        built = drawn("plans", seed).build()
        plan = runner_of(built, on_drawn_devices(built, seed), seed).plan
        for number, place in enumerate(plan.places):
            for wait in place.waits:
                rest = tuple(w for w in place.waits if w != wait)
                with pytest.raises(ScheduleError, match="race"):
                    verify(without(plan, number, replace(place, waits=rest)))
                waits += 1
    assert waits > 50


def without(plan: HostPlan, number: int, place: Place) -> HostPlan:
    """The plan with another place for a task."""
    places = [place if n == number else p for n, p in enumerate(plan.places)]
    return HostPlan(plan.buffers, plan.tasks, places)


def moved(program: Program, kind: type) -> Program | None:
    """The program with one of its first steps behind the next one."""
    steps = list(program.steps)
    for n, step in enumerate(steps[:-1]):
        if isinstance(step, kind):
            steps[n : n + 2] = [steps[n + 1], step]
            return replace(program, steps=steps)
    return None


@pytest.mark.parametrize("kind", [Draw, Note])
def test_an_effect_at_another_place_is_seen(kind: type) -> None:
    """What the comparison is worth: steps that change places make programs of another meaning."""
    seen = 0
    for seed in range(1, 400, 4):
        program = drawn("order", seed)
        other = moved(program, kind)
        if other is None:
            continue
        inputs = program.inputs(seed)
        expected = Expected(*noted(lambda p=program, x=inputs: p.expected(x)))
        seen += expected.difference(*noted(lambda p=other, x=inputs: p.expected(x))) is not None
    assert seen > 10
