"""Loops that stay loops: random functions at every level and as they run, and proofs that are attacked."""

from __future__ import annotations

import numpy as np
import pytest
from loop_programs import ARRAY, COLUMNS, ROWS, LoopProgram

import irkit
from irkit.context import IrkitContext
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.interp import run_module
from irkit.weights import WeightStore

LEVELS = ("graph", "tensor", "task", "schedule")


def inputs(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in ((ROWS, COLUMNS), (ROWS, COLUMNS), (COLUMNS,))]


def parsed(text: str):
    found = irkit.parse(text)
    return getattr(found, "module", found)


def same(given, wanted) -> bool:
    return all(np.array_equal(g, w) for g, w in zip(given, wanted, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_mean_the_same_at_every_level(seed: int):
    program, given = LoopProgram(seed, columns=seed >= 20), inputs(seed)
    module, weights = parsed(program.text), WeightStore()
    wanted = run_module(module, weights, given, level="graph")
    ctx = IrkitContext(weights=weights)
    register_dialects(ctx)
    for level in LEVELS:
        run_level(ctx, module, level, "cpu2")
        assert same(run_module(module, weights, given), wanted), program.text
    for order in range(2):
        assert same(run_module(module, weights, given, seed=order), wanted)


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_loops_run(seed: int):
    program, given = LoopProgram(seed, columns=True), inputs(seed)
    wanted = run_module(parsed(program.text), WeightStore(), given, level="graph")
    for mode in ("serial", "per-op", "per-wave", "persistent"):
        compiled = irkit.compile(parsed(program.text), device="cpu2", mode=mode)
        for _ in range(2):
            assert same(compiled(*given), wanted), program.text


HEAD = f"""func.func @main(%a: {ARRAY}) -> {ARRAY} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = LOW to HIGH step %c1 iter_args(%x = %a) -> ({ARRAY}) {{
"""
TAIL = f"""
    %z = graph.add %y, %y : ({ARRAY}, {ARRAY}) -> {ARRAY}
    scf.yield %z : {ARRAY}
  }}
  func.return %r : {ARRAY}
}}
"""
REFUSED = {
    "beyond the end": (
        "%c0",
        "%c9",
        "%v = tensor.extract_slice %x[%i, 0] [1, 3] [1, 1] : tensor<5x3xf64> to tensor<3xf64>\n"
        "%y = tensor.insert_slice %v into %x[0, 0] [1, 3] [1, 1] : tensor<3xf64> into tensor<5x3xf64>",
        "leaves the tensor",
    ),
    "a product of places": (
        "%c0",
        "%c9",
        "%k = arith.muli %i, %i : index\n"
        "%v = tensor.extract_slice %x[%k, 0] [1, 3] [1, 1] : tensor<5x3xf64> to tensor<3xf64>\n"
        "%y = tensor.insert_slice %v into %x[0, 0] [1, 3] [1, 1] : tensor<3xf64> into tensor<5x3xf64>",
        "no affine function",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_stay_a_loop_is_refused(case: str):
    low, high, body, message = REFUSED[case]
    head = HEAD.replace("LOW", low).replace("HIGH", high)
    head = head.replace("%c9 =", "%c3 = arith.constant 3 : index\n  %c9 =")
    with pytest.raises(UnsupportedError, match=message):
        irkit.compile(parsed(head + body + TAIL), device="cpu2")


def jacobi(n: int, steps: int) -> str:
    def stencil(source: str, name: str) -> str:
        part = f"tensor<{n - 2}xf64>"
        cuts = "".join(
            f"%{name}{k} = tensor.extract_slice %{source}[{k}] [{n - 2}] [1] : tensor<{n}xf64> to {part}\n"
            for k in range(3)
        )
        return (
            f"{cuts}%{name}3 = graph.add %{name}0, %{name}1 : ({part}, {part}) -> {part}\n"
            f"%{name}4 = graph.add %{name}3, %{name}2 : ({part}, {part}) -> {part}\n"
            f"%{name}5 = graph.mul %third, %{name}4 : (tensor<f64>, {part}) -> {part}\n"
        )

    whole, insert = (
        f"tensor<{n}xf64>",
        f"[1] [{n - 2}] [1] : tensor<{n - 2}xf64> into tensor<{n}xf64>",
    )
    return f"""func.func @main(%a: {whole}, %b: {whole}) -> ({whole}, {whole}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant {steps} : index
  %third = arith.constant dense<0.33333> : tensor<f64>
  %r:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%x = %a, %y = %b) -> ({whole}, {whole}) {{
    {stencil("x", "p")}
    %y1 = tensor.insert_slice %p5 into %y{insert}
    {stencil("y1", "q")}
    %x1 = tensor.insert_slice %q5 into %x{insert}
    scf.yield %x1, %y1 : {whole}, {whole}
  }}
  func.return %r#0, %r#1 : {whole}, {whole}
}}
"""


def jacobi_numpy(a: np.ndarray, b: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = a.copy(), b.copy()
    for _ in range(steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a, b


@pytest.mark.parametrize("mode", ["serial", "per-op", "per-wave", "persistent", "auto"])
def test_jacobi_is_numpys_bit_for_bit(mode: str):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=4000), rng.normal(size=4000)
    program = irkit.compile(parsed(jacobi(4000, 50)), device="cpu2", mode=mode)
    for _ in range(3):
        assert same(program(a, b), jacobi_numpy(a, b, 50))
    # Nothing is copied in the loop: both arrays are updated where they are.
    assert program.report()["steps"] == [
        "main_part1_schedule",
        {"trips": 50, "steps": ["main_part0_schedule"]},
    ]
    assert program.report()["arena_bytes"] == 0


def test_programs_with_loops_are_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=40), rng.normal(size=40)
    program = irkit.compile(parsed(jacobi(40, 7)), device="cpu2")
    program.save(tmp_path / "jacobi.irkit")
    assert same(irkit.load(tmp_path / "jacobi.irkit")(a, b), jacobi_numpy(a, b, 7))


def test_what_is_inserted_elsewhere_too_is_written_whole():
    """One rOperator runs in the loop, in place, and before it on arguments, which stay as they are."""
    part = "tensor<4xf64>"
    body = [
        f"%s{{n}} = graph.slice %{{a}} {{{{offsets = array<i64: 0>, sizes = array<i64: 4>, "
        f"strides = array<i64: 1>}}}} : (tensor<6xf64>) -> {part}",
        f"%t{{n}} = graph.mul %c, %s{{n}} : (tensor<f64>, {part}) -> {part}",
        f"%b{{n}} = tensor.insert_slice %t{{n}} into %{{b}}[1] [4] [1] : {part} into tensor<6xf64>",
        f"%a{{n}} = tensor.insert_slice %t{{n}} into %{{a}}[1] [4] [1] : {part} into tensor<6xf64>",
    ]
    before = "\n".join(line.format(n=0, a="A", b="B") for line in body)
    inside = "\n".join(line.format(n=1, a="a", b="b") for line in body)
    two = "(tensor<6xf64>, tensor<6xf64>)"
    text = f"""func.func @main(%A: tensor<6xf64>, %B: tensor<6xf64>) -> {two} {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %n = arith.constant 3 : index
  %c = arith.constant dense<3.000000e-01> : tensor<f64>
  {before}
  %4, %5 = scf.for %i = %0 to %n step %1 iter_args(%b = %b0, %a = %a0) -> {two} {{
    {inside}
    scf.yield %b1, %a1 : tensor<6xf64>, tensor<6xf64>
  }}
  func.return %5, %4 : tensor<6xf64>, tensor<6xf64>
}}
"""
    given = [np.arange(6.0) + 1, np.ones(6)]
    wanted = run_module(parsed(text), WeightStore(), given, level="graph")
    for mode in ("serial", "persistent"):
        assert same(irkit.compile(parsed(text), device="cpu2", mode=mode)(*given), wanted)
