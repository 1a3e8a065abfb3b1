# pyright: basic
"""Loops that go on as long as data say so: random functions at every level and as they run, methods that
iterate until a tolerance, and proofs that are attacked."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_programs import LoopProgram

import irkit
from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.pipelines.lowering import bring_to_level, run_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.interp import run_module
from irkit.weights import WeightStore
from tests.unit.jitted import check
from tests.unit.test_loops import LEVELS, inputs, parsed, same

MODES = ("serial", "per-op", "per-wave", "persistent")
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_mean_the_same_at_every_level(seed: int):
    program, arrays = LoopProgram(seed, columns=seed >= 20, asks=True), inputs(seed)
    module, weights = parsed(program.text), WeightStore()
    wanted = run_module(module, weights, arrays, level="graph")
    ctx = IrkitContext(weights=weights)
    register_dialects(ctx)
    for level in LEVELS:
        run_level(ctx, module, level, "cpu2")
        assert same(run_module(module, weights, arrays), wanted), program.text
    for order in range(2):
        assert same(run_module(module, weights, arrays, seed=order), wanted)


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_loops_run(seed: int):
    program, arrays = LoopProgram(seed, columns=True, asks=True), inputs(seed)
    wanted = run_module(parsed(program.text), WeightStore(), arrays, level="graph")
    for mode in MODES:
        compiled = irkit.compile(parsed(program.text), device="cpu2", mode=mode)
        for _ in range(3):
            assert same(compiled(*arrays), wanted), program.text


# Methods


def conjugate_gradients(a, b):
    def go_on(x, r, p, rr, n):
        return (rr > 1e-20) & (n < 200)

    def step(x, r, p, rr, n):
        q = a @ p
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        new = r @ r
        return x, r, r + (new / rr) * p, new, n + 1

    start = (np.zeros_like(b), b.copy(), b.copy(), b @ b, np.int64(0))
    x, _, _, rr, n = irkit.while_loop(go_on, step, start)
    return x, rr, n


def power_iteration(a, x):
    def go_on(x, old, new, n):
        return (np.abs(new - old) > 1e-9) & (n < 500)

    def step(x, old, new, n):
        y = a @ x
        y = y / np.sqrt(y @ y)
        return y, new, y @ (a @ y), n + 1

    x, _, value, n = irkit.while_loop(go_on, step, (x, np.float64(0), np.float64(1), np.int64(0)))
    return value, x, n


def newton(x):
    def go_on(y, n):
        return (np.abs(y * y - x) > 1e-12 * x).any() & (n < 50)

    def step(y, n):
        return 0.5 * (y + x / y), n + 1

    y, n = irkit.while_loop(go_on, step, (x.copy(), np.int64(0)))
    for i in irkit.range(3):
        y += i
    return y, n


def symmetric(n: int) -> np.ndarray:
    half = RNG.random((n, n))
    return half @ half.T + n * np.eye(n)


@pytest.mark.parametrize("mode", MODES)
def test_methods_until_a_tolerance(mode: str):
    def jit(function):
        return irkit.jit(device="cpu2", mode=mode)(function)

    solved = check(conjugate_gradients, symmetric(40), RNG.random(40), tolerance=1e-9, jit=jit)
    assert "task.while" in solved.ir("schedule")
    _, rr, n = solved(symmetric(40), RNG.random(40))
    assert rr <= 1e-20
    assert 3 < n < 200
    check(power_iteration, symmetric(33), np.ones(33), tolerance=1e-6, jit=jit)
    check(newton, RNG.random(1001) + 0.5, tolerance=1e-12, jit=jit)


def test_a_call_knows_nothing_of_the_one_before():
    """Numbers of turns from call to call, none among them."""
    jitted = irkit.jit(device="cpu2", mode="persistent")(newton)
    for scale in (1.0, 1e6, 1.0, 1e-6, 1.0):
        x = np.full(2000, scale)
        np.testing.assert_array_equal(jitted(x)[0], newton(x)[0])
        assert jitted(x)[1] == newton(x)[1]


def counted(x, turns):
    def step(x, n):
        return x + 1.0, n + 1

    return irkit.while_loop(lambda x, n: n < turns, step, (x, np.int64(0)))


def test_no_turn_begins_before_all_have_asked():
    """A turn is so short that who asks late would find the next answer."""
    jitted = irkit.jit(device="cpu2", mode="persistent")(counted)
    for turns in (0, 1, 20_000):
        x, n = jitted(np.zeros(4096), np.int64(turns))
        assert n == turns
        assert (x == turns).all()


def nested(x, y):
    total = np.zeros_like(x[0])
    for i in irkit.range(x.shape[0]):

        def halve(row, n):
            for _ in irkit.range(2):
                row = row * 0.5
            return row, n + 1

        row, n = irkit.while_loop(lambda row, n: (row > y).any(), halve, (x[i], np.int64(0)))
        total += row + n
        x[i] = row
    return total


def of_both(x):
    def outer(x, n):
        x, _ = irkit.while_loop(lambda x, m: m < n, lambda x, m: (x + m, m + 1), (x, np.int64(0)))
        return x, n + 1

    return irkit.while_loop(lambda x, n: n < 7, outer, (x, np.int64(0)))


def test_loops_in_loops():
    jit = irkit.jit(device="cpu2")
    check(nested, 100 * RNG.random((20, 6)), RNG.random(6), jit=jit)
    check(of_both, RNG.random(5), jit=jit)


STEPS = [
    "u = v * 0.5",
    "v = u + w",
    "u, v = v, u",
    "v = np.where(u > v, u - v, v)",
    "w = w + u.max()",
    "u = u * x[2]",
    "w = np.minimum(w, v)",
]
LIMITS = ["n < 5", "(n < 6) & (u.sum() < 20)", "(n < 4) & (w[0] < v).any()", "u[0] + n < 3"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), st.sampled_from(LIMITS))
def test_random_bodies(steps, limit):
    """Whatever is bound anew or changes places, on the way until something holds no more."""
    body = "\n        ".join(steps)
    text = f"""
def function(u, v, w, x):
    def step(u, v, w, n):
        {body}
        return u, v, w, n + 1

    return irkit.while_loop(lambda u, v, w, n: {limit}, step, (u, v, w, np.int64(0)))
"""
    names = {"np": np, "irkit": irkit}
    exec(text, names)
    arrays = [RNG.random(6) for _ in range(3)]
    check(names["function"], *arrays, RNG.random(4), tolerance=1e-14, jit=irkit.jit(device="cpu2"))


# Proofs

LOOP = """
func.func @main(%x: tensor<8xf64>, %w: tensor<8xf64>) -> (tensor<8xf64>, tensor<i1>) {
  %go = arith.constant dense<true> : tensor<i1>
  %zero = arith.constant dense<0> : tensor<i64>
  %r:3 = scf.while (%g = %go, %h = %go, %a = %x)
      : (tensor<i1>, tensor<i1>, tensor<8xf64>) -> (tensor<i1>, tensor<i1>, tensor<8xf64>) {
    %c = tensor.extract %h[] : tensor<i1>
    scf.condition(%c) %g, %h, %a : tensor<i1>, tensor<i1>, tensor<8xf64>
  } do {
  ^bb0(%g1: tensor<i1>, %h1: tensor<i1>, %a1: tensor<8xf64>):
    %b = graph.add %a1, %w : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    %s = graph.slice %b {offsets = array<i64: 0>, sizes = array<i64: 1>, strides = array<i64: 1>}
      : (tensor<8xf64>) -> tensor<1xf64>
    %t = graph.reshape %s {shape = array<i64>} : (tensor<1xf64>) -> tensor<f64>
    %four = arith.constant dense<4.0> : tensor<f64>
    %q = graph.compare %t, %four {predicate = "lt"} : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %n = graph.not %g1 : (tensor<i1>) -> tensor<i1>
    scf.yield %n, %q, %b : tensor<i1>, tensor<i1>, tensor<8xf64>
  }
  func.return %r#2, %r#0 : tensor<8xf64>, tensor<i1>
}
"""


def context() -> IrkitContext:
    ctx = IrkitContext()
    register_dialects(ctx)
    return ctx


@cache
def scheduled() -> str:
    """The text of a proved schedule, without its proof."""
    module = parsed(LOOP)
    bring_to_level(context(), module, "schedule", "cpu2")
    return re.sub(r', modes = \[[^\]]*\], verified = "[^"]*"', "", str(module))


def prove(text: str) -> str:
    module = parsed(text)
    PipelineRunner(context()).run(module, build_pipeline("verify-schedule", all_passes()))
    return str(module)


def attacked() -> dict[str, tuple[str, str]]:
    text = scheduled()
    asked = re.search(r"task\.while (%\w+) ", text)
    assert asked is not None
    own = asked[1]
    other = next(
        name
        for name in re.findall(
            r"(%\w+) = task\.buffer .*: tensor<i1>", text[text.index("task.composite") :]
        )
        if name != own
    )
    start, end = text.index("    task.while"), text.rindex("    }\n") + 6
    loop = text[start:end]
    inner = loop[loop.index("{") + 2 : loop.rindex("    }")]
    return {
        "another question": (text.replace(f"while {own} ", f"while {other} "), "'meaning'"),
        "counted": (text.replace(f"task.while {own} ", "task.repeat 3 "), "not as long as data"),
        "once": (text.replace(loop, inner), "stands for a loop"),
        "never": (text.replace(loop, ""), "'once'"),
        "twice": (text.replace(loop, loop + loop), "'once'"),
        "begun elsewhere": (re.sub(r"( *task\.run @main_part1.*\n)", "", text), "'once'|'meaning'"),
    }


def test_what_is_changed_is_refused():
    assert 'verified = "' in prove(scheduled())
    for name, (text, reason) in attacked().items():
        assert text != scheduled(), name
        with pytest.raises(UserError, match=reason):
            prove(text)


def test_slices_that_move_with_turns_nobody_knows_are_refused():
    text = scheduled()
    run = next(line for line in text.splitlines() if "task.run @main_part0" in line)
    name = re.search(r"reads\((%\w+)", run)
    assert name is not None
    moved = run.replace(
        name[1], f"{name[1]} at 0 step [0, 8]" if False else f"{name[1]} at 0 step [8]", 1
    )
    with pytest.raises(UserError, match="moves with a loop whose turns nobody knows"):
        prove(text.replace(run, moved))


# Refusals


def test_a_gpu_asks_for_nothing():
    module = parsed(LOOP)
    with pytest.raises(UserError, match=r"'scf\.while' in a schedule for a GPU"):
        bring_to_level(context(), module, "schedule", "h200")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "%c = tensor.extract %h[]",
            "%k = graph.not %h : (tensor<i1>) -> tensor<i1>\n %c = tensor.extract %k[]",
            "computes where it asks|does not carry",
        ),
        (
            "%g, %h, %a : tensor<i1>, tensor<i1>",
            "%h, %g, %a : tensor<i1>, tensor<i1>",
            "hands on other values",
        ),
        ("tensor.extract %h[]", "tensor.extract %go[]", "does not carry"),
    ],
)
def test_other_forms_are_refused(old: str, new: str, reason: str):
    assert old in LOOP
    with pytest.raises((UserError, UnsupportedError), match=reason):
        bring_to_level(context(), parsed(LOOP.replace(old, new, 1)), "schedule", "cpu2")
