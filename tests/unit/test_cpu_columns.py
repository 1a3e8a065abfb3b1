"""Reductions down columns, outputs side by side in vector registers: `reduce.columns`, in index order."""

from __future__ import annotations

import numpy as np
import pytest
from test_cpu_sums import module

import irkit
from irkit.interp import run_module
from irkit.weights import WeightStore

SHAPES = [((40, 33), (0,)), ((3, 37, 600), (1,)), ((5, 7, 9, 16), (1, 2)), ((50, 2, 1030), (0,))]


CASES = [
    *(("sum", shape, axes, "f64") for shape, axes in SHAPES),
    *((kind, *SHAPES[1], dtype) for kind, dtype in zip(
        ("max", "min", "prod", "mean", "sum", "sum"), ("f32", "i32", "f64", "f32", "i8", "f32"), strict=True,
    )),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "shape", "axes", "dtype"), CASES)
def test_in_index_order(
    kind: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str
) -> None:
    text = module(kind, shape, axes, dtype)
    program = irkit.compile(irkit.parse(text), device="cpu2")
    assert "reduce.columns" in program.ir("schedule")
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape) if dtype[0] == "f" else rng.integers(-100, 100, shape)
    x = x.astype({"f32": "float32", "f64": "float64", "i32": "int32", "i8": "int8"}[dtype])
    (want,) = run_module(irkit.parse(text), WeightStore(), [x])
    np.testing.assert_array_equal(program(x), want)


def test_nan_and_zeros_stay_in_their_column() -> None:
    program = irkit.compile(irkit.parse(module("max", (40, 16), (0,), "f64")), device="cpu1")
    assert "reduce.columns" in program.ir("schedule")
    x = np.full((40, 16), -1.0)
    x[3, 5], x[39, 6], x[0, 7] = np.nan, -0.0, 0.0
    want = np.full(16, -1.0)
    want[5:8] = np.nan, -0.0, 0.0
    got = program(x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[6:8]), [True, False])


def test_few_columns_are_summed_one_after_another() -> None:
    program = irkit.compile(irkit.parse(module("sum", (40, 4), (0,), "f32")), device="cpu1")
    assert "reduce.columns" not in program.ir("schedule")
