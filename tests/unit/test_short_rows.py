"""Rows of a few elements, computed across rows; and indices of what is reshaped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_costs import text

import irkit
from irkit.dialects.tensor_ops.reshape import groups_of_shapes
from irkit.interp import run_module
from irkit.rkernels import registry
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.weights import WeightStore

EXPAND = "{shape = array<i64: 3, 5, 7, 2>}"
TURN = "{permutation = array<i64: 1, 2, 0>}"
CASES = {
    "plain": text("relu", "tensor<37x4xf32>", "tensor<37x4xf32>"),
    "of eight": text("exp", "tensor<3x5x8xf64>", "tensor<3x5x8xf64>"),
    "repeated": text("expand", "tensor<3x5x7x1xf32>", "tensor<3x5x7x2xf32>", EXPAND),
    "turned": text("transpose", "tensor<5x6x9xf32>", "tensor<6x9x5xf32>", TURN),
    "broadcast": text("add", "tensor<4x6x3xf32>, tensor<6x1xf32>", "tensor<4x6x3xf32>"),
    "batch": text("relu", "tensor<?x6x3xf32>", "tensor<?x6x3xf32>"),
}


@pytest.mark.parametrize("device", ["cpu1", "cpu2", "cpu7"])
@pytest.mark.parametrize("name", CASES)
def test_short_rows(name: str, device: str, monkeypatch: pytest.MonkeyPatch):
    kernel = registry.find("cpu", "map.short")
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "map"), [kernel])
    module = irkit.parse(CASES[name])
    (main,) = module.body.block.ops
    rng = np.random.default_rng(0)
    kinds = {"f32": np.float32, "f64": np.float64}
    arrays = [
        rng.standard_normal([11 if n < 0 else n for n in a.type.get_shape()]).astype(
            kinds[str(a.type.element_type)]
        )
        for a in main.body.block.args
    ]
    (want,) = run_module(module, WeightStore(), arrays)
    program = irkit.compile(
        irkit.parse(CASES[name]), "cpu", device=device, cache=False, mode="serial"
    )
    assert "map.short" in program.ir()
    (got,) = program.run(arrays)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_one_row_of_few_is_none_of_them():
    for shape in ("37x9", "1x4", "?x4", "4"):
        types = f"tensor<{shape}xf32>"
        module = irkit.parse(text("relu", types, types))
        program = irkit.compile(module, "cpu", device="cpu2", cache=False)
        assert "map.short" not in program.ir()


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes of as many elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=5))

    def joined() -> list[int]:
        found: list[int] = []
        for factor in factors:
            if found and draw(st.booleans()):
                found[-1] *= factor
            else:
                found.append(factor)
        return found

    return joined(), joined()


@settings(max_examples=200, deadline=None)
@given(shapes(), st.data())
def test_an_index_of_what_is_reshaped(pair: tuple[list[int], list[int]], data: st.DataObject):
    shape, to = pair
    position = data.draw(st.integers(0, math.prod(shape) - 1))
    index = tuple(str(int(i)) for i in np.unravel_index(position, shape)) if shape else ()
    printer = ElementPrinter()
    found = printer.reshaped(index, shape, to)
    names: dict[str, int] = {}
    exec("\n".join(printer.lines), names)
    want = tuple(int(i) for i in np.unravel_index(position, to)) if to else ()
    assert tuple(eval(text, names) for text in found) == want


def test_runs_of_dimensions_that_are_alike():
    def runs(shape: list[int], to: list[int]) -> list[tuple[list[int], list[int]]]:
        return [(shape[a], to[b]) for a, b in groups_of_shapes(shape, to)]

    assert runs([8, 14, 1, 14, 1], [8, 14, 14]) == [([8], [8]), ([14, 1], [14]), ([14, 1], [14])]
    assert runs([6, 4, 5], [3, 8, 5]) == [([6, 4], [3, 8]), ([5], [5])]
    # What is not known is one run with all before it: here a batch of 8 times as many.
    assert runs([-1, 8, 4], [-1, 4]) == [([-1, 8], [-1]), ([4], [4])]
    assert runs([-1, 6], [-1, 2, 3]) == [([-1], [-1]), ([6], [2, 3])]
