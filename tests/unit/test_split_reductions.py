"""split-reductions: two steps give what one gives, and what they reduce is computed beside them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import ReduceOp
from irkit.interp.graph import run_graph
from irkit.passes.graph.split_reductions import SplitReductions
from irkit.weights import WeightStore

ELEMENTS = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "ui64": np.uint64}


def text(shape: tuple[int, ...], axes: list[int], kind: str, element: str, keep: bool) -> str:
    """A reduction of twice an array."""
    x = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    kept = [1 if d in axes else s for d, s in enumerate(shape) if keep or d not in axes]
    y = f"tensor<{''.join(f'{s}x' for s in kept)}{element}>"
    along = ", ".join(map(str, axes))
    how = f'{{kind = "{kind}", axes = array<i64: {along}>, keepdims = {str(keep).lower()}}}'
    return (
        f"func.func @main(%x: {x}) -> {y} {{ %a = graph.add %x, %x : ({x}, {x}) -> {x} "
        f"%y = graph.reduce %a {how} : ({x}) -> {y} func.return %y : {y} }}"
    )


@pytest.mark.parametrize("seed", range(24))
def test_random_reductions(seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    rank = draw.randint(1, 4)
    first = draw.randrange(rank)
    axes = list(range(first, draw.randint(first, rank - 1) + 1))
    shape = [draw.choice([1, 2, 3, 5]) for _ in range(rank)]
    # Many terms in one of the dimensions, of any number.
    shape[draw.choice(axes)] = draw.randint(8_000, 70_000)
    kind, element = draw.choice(["sum", "max", "min", "prod"]), draw.choice(list(ELEMENTS))
    dtype = ELEMENTS[element]
    x = rng.integers(0, 5, shape).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        x = (1 + 1e-3 * rng.standard_normal(shape)).astype(dtype) / 2
    module = irkit.parse(text(tuple(shape), axes, kind, element, draw.random() < 0.5))
    weights = WeightStore()
    (before,) = run_graph(module, weights, [x])
    SplitReductions(device="h200").apply(IrkitContext(weights=weights), module)
    module.verify()
    (after,) = run_graph(module, weights, [x])
    assert after.shape == before.shape
    steps = sum(isinstance(op, ReduceOp) for op in module.walk())
    assert steps == 1 + (math.prod(shape[a] for a in axes) >= 1 << 14)
    if np.issubdtype(dtype, np.floating):
        np.testing.assert_allclose(after, before, rtol=2e-3 if dtype == np.float32 else 1e-10)
    else:
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("count", [1 << 20, 999_983])
def test_what_is_reduced_is_computed_in_the_same_launch(count: int) -> None:
    """Two launches, one more for what is left over."""
    module = irkit.parse(text((count,), [0], "sum", "f64", False))
    found = irkit.compile(module, device="h200", cache=False).report()["roperators"]
    assert len(found) == (2 if count == 1 << 20 else 3)
    assert max(r["rtasks"] for r in found.values()) > 100


def test_nothing_changes_on_a_cpu() -> None:
    module = irkit.parse(text((1 << 15,), [0], "sum", "f32", False))
    before = str(module)
    SplitReductions(device="cpu4").apply(IrkitContext(weights=WeightStore()), module)
    assert str(module) == before


@pytest.mark.parametrize("seed", range(8))
def test_dimensions_that_are_apart(seed: int) -> None:
    """The last ones first, then the others: as the gradient of a bias per channel is summed."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(8, 40)), int(rng.integers(1, 6)), int(rng.integers(20, 40)), 30)
    axes = [[0, 2, 3], [0, 3], [0, 2]][seed % 3]
    kind = ["sum", "max"][seed % 2]
    x = rng.standard_normal(shape)
    module = irkit.parse(text(shape, axes, kind, "f64", keep=bool(seed % 4)))
    (before,) = run_graph(module, WeightStore(), [x])
    SplitReductions(device="h200").apply(IrkitContext(), module)
    module.verify()
    (after,) = run_graph(module, WeightStore(), [x])
    found = [[*op.axes.get_values()] for op in module.walk() if isinstance(op, ReduceOp)]
    few = math.prod(s for d, s in enumerate(shape) if d not in axes) < 132
    many = math.prod(shape[a] for a in axes) >= 1 << 14
    last = [a for a in axes if a > 0] if axes != [0, 2] else [2]
    assert found == ([last, [0]] if few and many else [axes])
    np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12)
