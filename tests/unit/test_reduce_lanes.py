"""A few lanes of a warp have an output, or all of a short row: `reduce.lanes`, run by the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_op import roperator, run_by

from irkit.rkernels import registry
from irkit.rkernels.legality import root_of

LANES = registry.find("cuda", "reduce.lanes")


def matmul(left: str, right: str, result: str, behind: str = "") -> str:
    """A product, and what is made of it."""
    return f"""func.func @main(%x: tensor<{left}>, %w: tensor<{right}>) -> tensor<{result}> {{
      %y = graph.matmul %x, %w : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>
      {behind}
      func.return {"%z" if behind else "%y"} : tensor<{result}>
    }}"""


def reduce(kind: str, shape: str, result: str, axis: int) -> str:
    """A reduction along an axis."""
    return f"""func.func @main(%x: tensor<{shape}>) -> tensor<{result}> {{
      %y = graph.reduce %x {{kind = "{kind}", axes = array<i64: {axis}>, keepdims = false}}
        : (tensor<{shape}>) -> tensor<{result}>
      func.return %y : tensor<{result}>
    }}"""


def run(text: str, arrays: list[Any], want: Any, **given: int) -> dict[str, int]:
    """By `reduce.lanes`, as one rTask and as several, of one block and of two; returns its literals."""
    op, order = roperator(text)
    assert LANES.legal(root_of(op))
    for tasks, blocks, threads in ((1, 1, 64), (3, 1, 64), (2, 2, 64), (1, 1, 32)):
        got = np.full(want.shape, 77, want.dtype)
        operands = [arrays[n] for n in order]
        run_by(op, "reduce.lanes", operands, [got], tasks, blocks, threads=threads, **given)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)
    return dict(LANES.literals(root_of(op)))


@pytest.mark.parametrize("seed", range(14))
def test_products_with_few_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = ("f32", "f64")[seed % 2]
    rows, columns, terms = (int(rng.integers(*ends)) for ends in ((1, 45), (1, 12), (8, 300)))
    x, w = rng.standard_normal((rows, terms)), rng.standard_normal((terms, columns))
    arrays = [a.astype(f"f{int(kind[1:]) // 8}") for a in (x, w)]
    text = matmul(f"{rows}x{terms}x{kind}", f"{terms}x{columns}x{kind}", f"{rows}x{columns}x{kind}")
    found = run(text, arrays, (x @ w).astype(arrays[0].dtype))
    assert found["COLUMNS"] == (columns if columns <= 8 else 1)
    assert found["LANES"] <= terms // 2


def test_what_is_fused_before_and_behind() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((21, 30)).astype("f4"), rng.standard_normal((30, 3)).astype("f4")
    behind = "%z = graph.abs %y : (tensor<21x3xf32>) -> tensor<21x3xf32>"
    run(matmul("21x30xf32", "30x3xf32", "21x3xf32", behind), [x, w], np.abs(x @ w))
    before = """func.func @main(%x: tensor<21x30xf32>) -> tensor<21xf32> {
      %z = graph.mul %x, %x : (tensor<21x30xf32>, tensor<21x30xf32>) -> tensor<21x30xf32>
      %y = graph.reduce %z {kind = "sum", axes = array<i64: 1>, keepdims = false}
        : (tensor<21x30xf32>) -> tensor<21xf32>
      func.return %y : tensor<21xf32>
    }"""
    run(before, [x], (x * x).sum(1))


@pytest.mark.parametrize("batch", [1, 7, 20])
def test_rows_of_a_batch(batch: int) -> None:
    x = np.random.default_rng(2).standard_normal((batch, 20)).astype("f4")
    text = reduce("sum", f"{batch}x20xf32", f"{batch}xf32", 1)
    run(text, [x], x.sum(1))


def test_several_dimensions_of_outputs() -> None:
    x = np.random.default_rng(3).standard_normal((3, 11, 2, 40)).astype("f4")
    found = run(reduce("max", "3x11x2x40xf32", "3x11x2xf32", 3), [x], x.max(3))
    assert found["COLUMNS"] == 2


@pytest.mark.parametrize("axes", [(1, 3), (2, 3), (0, 1, 3)])
def test_several_dimensions_of_terms(axes: tuple[int, ...]) -> None:
    """Some of which lie apart."""
    x = np.random.default_rng(6).standard_normal((3, 4, 5, 11)).astype("f4")
    want = x.sum(axes)
    text = reduce("sum", "3x4x5x11xf32", f"{'x'.join(map(str, want.shape))}xf32", 0)
    run(text.replace("array<i64: 0>", f"array<i64: {', '.join(map(str, axes))}>"), [x], want)


@pytest.mark.parametrize(("kind", "dtype"), [("i8", "i1"), ("i32", "i4"), ("ui64", "u8")])
def test_integers(kind: str, dtype: str) -> None:
    """Which shuffles know only of 32 and 64 bits."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(4).integers(info.min, info.max, (13, 50), dtype, endpoint=True)
    run(reduce("max", f"13x50x{kind}", f"13x{kind}", 1), [x], x.max(1))
    run(reduce("min", f"13x50x{kind}", f"13x{kind}", 1), [x], x.min(1))


def test_a_nan_reaches_its_row_alone() -> None:
    x = np.random.default_rng(5).standard_normal((9, 33)).astype("f4")
    x[4, 17] = np.nan
    x[5, 3] = np.inf
    run(reduce("max", "9x33xf32", "9xf32", 1), [x], x.max(1))
    run(reduce("sum", "9x33xf32", "9xf32", 1), [x], x.sum(1))


@pytest.mark.parametrize("text", [
    reduce("sum", "40x20xf32", "20xf32", 0),
    reduce("sum", "40x7xf32", "40xf32", 1),
])  # fmt: skip
def test_rows_that_are_too_short_and_columns_are_refused(text: str) -> None:
    assert not LANES.legal(root_of(roperator(text)[0]))
