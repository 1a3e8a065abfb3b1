"""Programs that the host takes part in: cut into regions, which are functions of values each."""

from __future__ import annotations

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import f64, i1

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.program.builder import ProgramBuilder
from irkit.dialects.program.check import program_faults, written_arguments
from irkit.dialects.program.views import buffer_type
from irkit.interp.program import Execution, run_program
from irkit.passes.program.form_regions import FormRegions
from irkit.passes.program.functionalise import functionalised
from irkit.passes.program.regions import region_modules
from tools.fuzz.effects.attempt import disagreement
from tools.fuzz.effects.programs import Call, random_program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_calls(seed: int):
    rng = random.Random(f"regions {seed}")
    program = random_program(rng, calls=True)
    assert disagreement(program, seed) is None, str(program.build().module)


def test_the_fuzzer_calls_the_host():
    programs = [random_program(random.Random(n), calls=True) for n in range(40)]
    assert sum(any(isinstance(s, Call) for s in p.steps) for p in programs) > 20


def newton():
    """y = -x, then x halved until its first element is small, counted by the host; then y += x."""
    b = ProgramBuilder([("x", buffer_type(f64, (4,))), ("steps", buffer_type(f64, ()))])
    x, steps = b.buffers
    go = b.alloc(i1, ())
    first = b.view(x, 0, (), ())
    small = b.constant(np.float64(1e-3))
    y = b(graph.NegOp, b.read(x))

    def ask() -> None:
        b.write(b(graph.CompareOp, small, b.read(first), predicate="lt"), go)

    ask()
    with b.while_loop(go):
        half = b(graph.MulOp, b.read(x), b.constant(np.float64(0.5)))
        b.write(half, x)
        b.call("count", [steps], [0], [0])
        # Computed before the call, read behind it.
        b.write(b(graph.AddOp, half, b.constant(np.float64(0))), x)
        ask()
    out = b.alloc(f64, (4,))
    b.write(b(graph.AddOp, y, b.read(x)), out)
    return b.finish([("out", out)])


def expected(x: np.ndarray) -> list[np.ndarray]:
    y, steps, x = -x, 0.0, x.copy()
    while x[0] > 1e-3:
        x *= 0.5
        steps += 1
    return [y + x, x, np.float64(steps)]


def count(steps: np.ndarray) -> None:
    steps += 1


def test_values_are_kept_across_calls_and_loops_that_ask():
    built = newton()
    given = [np.array([3.0, 1.0, -2.0, 5.0]), np.array(0.0)]
    before = run_program(built.module, built.weights, given, {"count": count})
    FormRegions().apply(IrkitContext(weights=built.weights), built.module)
    built.module.verify()
    assert not list(program_faults(built.module))
    after = run_program(built.module, built.weights, given, {"count": count})
    regions = {}
    for name, module in region_modules(built.module).items():
        main = module.body.block.first_op
        function = functionalised(main, built.weights)

        def run(*arrays, function=function, main=main):
            left = Execution(function, built.weights, {}).run(arrays)
            for n, value in zip(written_arguments(main), left, strict=True):
                arrays[n][...] = value

        regions[name] = run
    assert len(regions) == 4  # before the loop, its body before and behind the call, and the end
    compiled = run_program(built.module, built.weights, given, {"count": count, **regions})
    for results in (before, after, compiled):
        for found, want in zip(results, expected(given[0]), strict=True):
            np.testing.assert_array_equal(found, want)


def test_a_program_without_the_host_stays():
    b = ProgramBuilder([("x", buffer_type(f64, (4,)))])
    (x,) = b.buffers
    b.write(b(graph.NegOp, b.read(x)), x)
    built = b.finish([])
    text = str(built.module)
    FormRegions().apply(IrkitContext(weights=built.weights), built.module)
    assert str(built.module) == text
