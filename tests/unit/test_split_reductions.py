"""split-reductions: two steps give what one gives, and what they reduce is computed beside them."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import ReduceOp
from irkit.dialects.types import ints
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
    if math.prod(shape[axes[-1] + 1 :]) == 1:
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
    found = [ints(op.axes) for op in module.walk() if isinstance(op, ReduceOp)]
    few = math.prod(s for d, s in enumerate(shape) if d not in axes) < 132
    many = math.prod(shape[a] for a in axes) >= 1 << 14
    last = [a for a in axes if a > 0] if axes != [0, 2] else [2]
    assert found == ([last, [0]] if few and many else [axes])
    np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12)


def reduced(lines: str, arguments: str, shape: str, axes: str, kind: str, kept: str) -> str:
    """A function that reduces %p."""
    how = f'{{kind = "{kind}", axes = array<i64: {axes}>, keepdims = false}}'
    return (
        f"func.func @main({arguments}) -> tensor<{kept}> {{ {lines} "
        f"%y = graph.reduce %p {how} : (tensor<{shape}>) -> tensor<{kept}> "
        f"func.return %y : tensor<{kept}> }}"
    )


CENTRED = reduced(
    "%c = graph.sub %x, %m : (tensor<128x64x128xf32>, tensor<128x64x1xf32>) -> tensor<128x64x128xf32> "
    "%s = graph.mul %c, %w : (tensor<128x64x128xf32>, tensor<128xf32>) -> tensor<128x64x128xf32> "
    "%p = graph.mul %s, %g : (tensor<128x64x128xf32>, tensor<128x64x128xf32>) -> tensor<128x64x128xf32>",
    "%x: tensor<128x64x128xf32>, %m: tensor<128x64x1xf32>, %w: tensor<128xf32>, "
    "%g: tensor<128x64x128xf32>",
    "128x64x128xf32",
    "0, 1",
    "sum",
    "128xf32",
)
"""The gradient of a normalisation's scale: what is normalised is not kept."""


def test_columns_of_what_is_computed() -> None:
    """Two launches; the parts read whole lines of rows, and all that is summed is computed in them."""
    found = irkit.compile(irkit.parse(CENTRED), device="h200", cache=False)
    first, last = found.report()["roperators"].values()
    assert first["rkernel"] == "reduce.columns"
    assert first["rtasks"] >= 100
    text = found.ir("schedule")
    assert "-> tensor<32x128xf32> attributes" in text
    assert "grid = array<i64: 32, 4>" in text
    assert last["rtasks"] >= 1


def both(text: str, arrays: list[Any]) -> tuple[Any, Any, list[list[int]]]:
    """What a graph gives before the pass and after it, and the axes that are reduced then."""
    module, weights = irkit.parse(text), WeightStore()
    (before,) = run_graph(module, weights, arrays)
    SplitReductions(device="h200").apply(IrkitContext(weights=weights), module)
    module.verify()
    (after,) = run_graph(module, weights, arrays)
    axes = [ints(op.axes) for op in module.walk() if isinstance(op, ReduceOp)]
    return before, after, axes


def test_columns_of_what_is_broadcast() -> None:
    rng = np.random.default_rng(0)
    shapes = [(128, 64, 128), (128, 64, 1), (128,), (128, 64, 128)]
    arrays = [rng.integers(-2, 3, s).astype(np.float32) for s in shapes]
    before, after, axes = both(CENTRED, arrays)
    assert axes == [[1], [0]]
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("seed", range(12))
def test_random_columns(seed: int) -> None:
    """Of an element and one that is broadcast along any of its dimensions, of whole numbers."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    lead, tail = draw.choice([(), (1,), (3,)]), draw.choice([(1, 40), (33,), (5, 7)])
    terms = draw.choice([(9_001,), (90, 100), (1, 12_000), (16, 1024, 1)])
    shape = (*lead, *terms, *tail)
    other = tuple(draw.choice([1, n]) for n in shape)[draw.choice([0, 0, 1]) :]
    kind, element = draw.choice(["sum", "mean", "max", "min"]), draw.choice(["f32", "f64", "i32"])
    if kind == "mean" and element == "i32":
        kind = "sum"
    x, y = ("x".join([*map(str, s), element]) for s in (shape, other))
    text = reduced(
        f"%p = graph.mul %x, %b : (tensor<{x}>, tensor<{y}>) -> tensor<{x}>",
        f"%x: tensor<{x}>, %b: tensor<{y}>",
        x,
        ", ".join(str(len(lead) + n) for n in range(len(terms))),
        kind,
        "x".join([*map(str, (*lead, *tail)), element]),
    )
    arrays = [rng.integers(-4, 5, s).astype(ELEMENTS[element]) for s in (shape, other)]
    before, after, axes = both(text, arrays)
    assert len(axes) == 2
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    ("shape", "axis"), [((4096, 4096), 0), ((2000, 3000), 0), ((64, 100, 300), 1), ((512, 128), 0)]
)
def test_columns_that_are_summed_well_stay_whole(shape: tuple[int, ...], axis: int) -> None:
    before = text(shape, [axis], "sum", "f32", False)
    module = irkit.parse(before)
    SplitReductions(device="h200").apply(IrkitContext(), module)
    assert sum(isinstance(op, ReduceOp) for op in module.walk()) == 1


def test_means() -> None:
    """Of columns, and of dimensions that are apart, but not of rows; of integers neither."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (96, 200, 8)).astype(np.float32)
    for axes, found in (("0, 1", [[1], [0]]), ("0, 2", [[0, 2]]), ("1, 2", [[1, 2]])):
        kept = [s for d, s in enumerate(x.shape) if str(d) not in axes]
        lines = "%p = graph.neg %x : (tensor<96x200x8xf32>) -> tensor<96x200x8xf32>"
        given = (lines, "%x: tensor<96x200x8xf32>", "96x200x8xf32", axes, "mean")
        before, after, steps = both(reduced(*given, f"{kept[0]}xf32"), [x])
        assert steps == found
        np.testing.assert_allclose(after, before, rtol=1e-6)
