"""Long sums in vector registers, in any order: `reduce.lanes` against float64."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irkit

MODULE = """
!x = tensor<{shape}x{dtype}>
!y = tensor<{left}x{dtype}>
func.func @main(%x: !x) -> !y {{
  %y = graph.reduce %x {{kind = "{kind}", axes = array<i64: {axes}>, keepdims = false}} : (!x) -> !y
  func.return %y : !y
}}
"""
CASES = [
    ((3, 33), (1,)),
    ((5, 7, 7), (1, 2)),
    ((2, 3, 14, 15), (2, 3)),
    ((40, 6), (0,)),
    ((4, 3, 50), (0, 2)),
    ((2, 3, 2, 5, 7), (1, 2, 3, 4)),
]


def module(kind: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> str:
    left = [str(n) for d, n in enumerate(shape) if d not in axes]
    across = "x".join(str(n) for n in shape)
    return MODULE.format(
        kind=kind,
        shape=across,
        left="x".join(left),
        axes=", ".join(str(a) for a in axes),
        dtype=dtype,
    )


@pytest.mark.parametrize(("shape", "axes"), CASES)
@pytest.mark.parametrize(("dtype", "bound"), [("f32", 4e-7), ("f64", 1e-15)])
def test_means(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, bound: float) -> None:
    program = irkit.compile(irkit.parse(module("mean", shape, axes, dtype)), device="cpu2")
    assert "reduce.lanes" in program.ir("schedule")
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape).astype("float32" if dtype == "f32" else "float64")
    meant = x.astype(np.longdouble).mean(axis=axes)
    np.testing.assert_allclose(program(x), meant, rtol=0, atol=bound)


def test_infinities_and_nan_reach_their_sum_alone() -> None:
    program = irkit.compile(irkit.parse(module("sum", (5, 40), (1,), "f32")), device="cpu1")
    x = np.ones((5, 40), np.float32)
    x[1, 39], x[2, 7], x[3, 0], x[3, 20] = np.nan, np.inf, np.inf, -np.inf
    np.testing.assert_array_equal(program(x), [40, np.nan, np.inf, np.nan, 40])


@pytest.mark.parametrize(("kind", "terms"), [("max", 50), ("prod", 50), ("sum", 20)])
def test_others_keep_the_order_of_the_terms(kind: str, terms: int) -> None:
    program = irkit.compile(irkit.parse(module(kind, (4, terms), (1,), "f32")), device="cpu1")
    assert "reduce.lanes" not in program.ir("schedule")


@pytest.mark.parametrize(
    ("shape", "axes", "loops"),
    [
        ((3, 6, 7), (1, 2), [42]),
        ((3, 6, 7), (0, 2), [3, 7]),
        ((4, 9, 2, 5), (1, 2, 3), [90]),
        ((4, 9, 2, 5), (0, 2, 3), [4, 10]),
        ((3, 4, 2, 5, 4), (0, 1, 3), [3, 4, 5]),
        ((2, 4, 3, 4, 3, 2), (0, 2, 4, 5), [2, 3, 6]),
    ],
)
def test_terms_side_by_side_are_one_loop(
    shape: tuple[int, ...], axes: tuple[int, ...], loops: list[int]
) -> None:
    program = irkit.compile(irkit.parse(module("sum", shape, axes, "f64")), device="cpu1")
    kernel = program.source[program.source.rindex("reduce_0_init(p0") :]
    extents = [int(n) for n in re.findall(r"for k\d in range\((\d+)\)", kernel)]
    assert extents == [*loops, 1, 1, 1][:3]
    x = np.random.default_rng(7).standard_normal(shape)
    np.testing.assert_allclose(program(x), x.sum(axis=axes), rtol=1e-13, atol=1e-13)
