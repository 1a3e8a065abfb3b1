"""Arrays of loops that are turned: any order of dimensions means the same, and columns are NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

import irkit
from irkit.interp import run_module
from irkit.passes.graph.loops.turning import Turner, can_turn
from irkit.passes.graph.loops.webs import webs_of
from irkit.weights import WeightStore

SHAPE = (3, 4, 5)
ARRAY = "tensor<3x4x5xf64>"


def part(draw, variables: dict[str, int]) -> tuple[str, list[int]]:
    """Offsets and sizes of a slice that stays inside for all numbers of the variables."""
    offsets, sizes = list[str](), list[int]()
    for extent in SHAPE:
        fitting = [v for v, trips in variables.items() if trips <= extent]
        at = draw(st.sampled_from(["0", *fitting]))
        free = extent - (variables[at] - 1 if at in variables else 0)
        offsets.append(at)
        sizes.append(draw(st.integers(1, free)))
    return ", ".join(offsets), sizes


@st.composite
def program(draw) -> str:
    """A loop in a loop: parts of an array that comes in and of one that both carry, parts written to it."""
    variables = {"%i": draw(st.integers(2, 5)), "%j": draw(st.integers(2, 4))}
    lines = list[str]()
    for n, source in enumerate(
        draw(st.lists(st.sampled_from(["%a", "%x"]), min_size=1, max_size=3))
    ):
        offsets, sizes = part(draw, variables)
        t = "x".join(map(str, sizes))
        dest = "%x" if n == 0 else f"%n{n - 1}"
        lines += [
            f"%p{n} = tensor.extract_slice {source}[{offsets}] {sizes} [1, 1, 1] : "
            f"{ARRAY} to tensor<{t}xf64>",
            f"%q{n} = graph.add %p{n}, %w : (tensor<{t}xf64>, tensor<f64>) -> tensor<{t}xf64>",
        ]
        lines.append(
            f"%n{n} = tensor.insert_slice %q{n} into {dest}[{offsets}] {sizes} [1, 1, 1] : "
            f"tensor<{t}xf64> into {ARRAY}"
        )
    last = f"%n{len(lines) // 3 - 1}"
    return f"""func.func @main(%a: {ARRAY}, %b: {ARRAY}, %w: tensor<f64>) -> ({ARRAY}, {ARRAY}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ci = arith.constant {variables["%i"]} : index
  %cj = arith.constant {variables["%j"]} : index
  %r = scf.for %i = %c0 to %ci step %c1 iter_args(%o = %b) -> ({ARRAY}) {{
    %s = scf.for %j = %c0 to %cj step %c1 iter_args(%x = %o) -> ({ARRAY}) {{
      {chr(10).join(lines)}
      scf.yield {last} : {ARRAY}
    }}
    scf.yield %s : {ARRAY}
  }}
  %y = graph.add %r, %a : ({ARRAY}, {ARRAY}) -> {ARRAY}
  func.return %y, %r : {ARRAY}, {ARRAY}
}}
"""


@settings(max_examples=60, deadline=None)
@given(program(), st.permutations(range(3)), st.permutations(range(3)))
def test_any_order_of_dimensions_means_the_same(text, first, second):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=SHAPE), rng.normal(size=SHAPE), rng.normal(size=())]
    module = irkit.parse(text)
    wanted = run_module(module, WeightStore(), arrays, level="graph")
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    webs = webs_of(function)
    assert webs
    for web, order in zip(webs, itertools.cycle([first, second])):
        assert can_turn(web)
        Turner(function, web, order).run()
    module.verify()
    for got, want in zip(
        run_module(module, WeightStore(), arrays, level="graph"), wanted, strict=True
    ):
        assert np.array_equal(got, want), text


def recurrence(x, y):
    held = np.ndarray(x.shape, dtype=x.dtype)
    held[:, :, 0] = x[:, :, 0]
    for k in range(1, x.shape[2]):
        held[:, :, k] = x[:, :, k] - 0.5 * held[:, :, k - 1] * y[:, :, k - 1]
    for k in range(x.shape[2] - 2, -1, -1):
        x[:, :, k] = held[:, :, k] + held[:, :, k + 1] * y[:, :, k]
    return held


def windows(x, w):
    size = w.shape[0]
    out = np.empty((x.shape[0], x.shape[1] - size + 1, x.shape[2] - size + 1))
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j] = (x[:, i : i + size, j : j + size] * w).sum(axis=(1, 2))
    return out


@pytest.mark.parametrize("extents", [(3, 4, 7), (1, 2, 20), (5, 1, 9)])
def test_columns_that_follow_from_one_another(extents):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, *extents))
    mine, compiled = x.copy(), irkit.jit(recurrence)
    assert np.array_equal(compiled(mine, y), recurrence(x, y))
    assert np.array_equal(mine, x)
    if extents[2] > 10:
        assert "graph.transpose" in compiled.ir("graph")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_windows_that_move_both_ways(size):
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(2, 9, 12)), rng.normal(size=(size, size))
    assert np.allclose(irkit.jit(windows)(x, w), windows(x, w), 1e-13)
