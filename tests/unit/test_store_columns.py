"""Epilogues of products, where an element's place is taken apart into row and column: once for each row."""

# pyright: basic, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.interp import run_module
from irkit.rkernels.families.depthwise import Depthwise
from irkit.rkernels.families.panel_product import PanelProduct
from irkit.rkernels.families.pixels import Pixels
from irkit.rkernels.families.planes import PlaneProduct
from irkit.rkernels.families.product import MatrixProduct
from irkit.weights import WeightStore

FAMILIES = (MatrixProduct, PanelProduct, PlaneProduct, Pixels, Depthwise)
RNG = np.random.default_rng(8)


def network(n, high, wide, apart=True):
    """A convolution; with `apart`, numbers of its rows and of its columns are multiplied and added."""
    x, y = f"tensor<{n}x3x{high}x{wide}xf32>", f"tensor<{n}x9x{high}x{wide}xf32>"
    rows, columns = f"tensor<{high}x1xf32>", f"tensor<{wide}xf32>"
    window = (
        "strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, "
        "group = 1 : i64"
    )
    epilogue = f"""
        %2 = graph.mul %1, %r : ({y}, {rows}) -> {y}
        %3 = graph.add %2, %c : ({y}, {columns}) -> {y}
        func.return %3 : {y}"""
    return irkit.parse(f"""
      func.func @main(%x: {x}, %w: tensor<9x3x3x3xf32>, %r: {rows}, %c: {columns}) -> {y} {{
        %1 = graph.conv %x, %w {{{window}}} : ({x}, tensor<9x3x3x3xf32>) -> {y}
        {epilogue if apart else f"func.return %1 : {y}"}
      }}""")


@pytest.fixture
def only(monkeypatch):
    """Convolutions go by one family alone."""

    def alone(wanted):
        for family in FAMILIES:
            if family is not wanted:
                monkeypatch.setattr(family, "refuses", lambda *_: "not here")

    return alone


@pytest.mark.parametrize("family", [MatrixProduct, PlaneProduct, Pixels, Depthwise])
@pytest.mark.parametrize("shape", [(1, 7, 9), (2, 1, 21), (1, 19, 2), (2, 5, 1)])
def test_every_row_and_column_has_its_own_numbers(only, family, shape):
    """Parts that begin within the rows, tiles over the ends of several, rows of one."""
    only(family)
    n, high, wide = shape
    inputs = [
        RNG.standard_normal(s).astype("f")
        for s in ((n, 3, high, wide), (9, 3, 3, 3), (high, 1), (wide,))
    ]
    (want,) = run_module(network(*shape), WeightStore(), inputs)
    program = irkit.compile(network(*shape), device="cpu2", cache=False)
    if wide > 1:
        assert f'"{family.name}.' in str(program.ir("task"))
    np.testing.assert_allclose(program(*inputs), want, rtol=1e-5, atol=1e-5)


def test_a_place_is_taken_apart_where_it_has_to_be_and_once_a_row(only):
    only(MatrixProduct)
    apart, whole = (
        irkit.compile(network(1, 12, 10, a), device="cpu2", cache=False).source
        for a in (True, False)
    )
    assert "_store_at(p0" in apart
    assert "_store_at(p0" not in whole
