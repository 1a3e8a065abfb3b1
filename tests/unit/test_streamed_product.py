"""Products of few rows, whose matrix is read where it lies, compiled for a CPU and in emulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_emulator import run as emulate
from numba import int64, njit
from test_panel_product import drawn, expression, gemm
from test_product import roperators

import irkit
from irkit.dialects.roperator_body import find_root
from irkit.dialects.roperator_root import Root
from irkit.frontends.module import ImportedModel, ModelInfo
from irkit.interp import run_module
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.cpu import streamed_product
from irkit.runtime.intrinsics import cpu as intrinsics
from irkit.runtime.intrinsics.cpu_products import add_tile
from irkit.weights import WeightStore

VARIANTS = ["product.streamed", "product.streamed_wide"]
LARGE = "tensor<4x900xf32>, tensor<900x400xf32>"


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the rKernels of products there is this one, for matrices of any size."""
    kernel = registry.find("cpu", request.param)
    monkeypatch.setattr(streamed_product, "PANEL_BYTES", 0)
    monkeypatch.setattr(streamed_product, "_FEWEST_COLUMNS", 1)
    for family in ("gemm", "gemv", "generated", "panel_product", "product"):
        kept = [kernel] if family == "product" else []
        monkeypatch.setitem(registry._REGISTERED, ("cpu", family), kept)
    return request.param


def rooted(source: str) -> tuple[Any, Root]:
    """The one rOperator, and its root."""
    info = ModelInfo("network", ("x0", "x1"), ("y",), source="test")
    (op,) = roperators(ImportedModel(irkit.parse(source), WeightStore(), info))
    return op, find_root(op.body.block)


def judge(source: str, variant: str, mode: str, atol: float) -> None:
    arrays = drawn(irkit.parse(source))
    wanted = run_module(irkit.parse(source), WeightStore(), arrays)
    program = irkit.compile(irkit.parse(source), "cpu", device="cpu2", mode=mode, cache=False)
    assert f'"{variant}"' in program.ir()
    for got, want in zip(program.run(arrays), wanted, strict=True):
        scale = float(np.abs(want).max(initial=1))
        np.testing.assert_allclose(got / scale, want / scale, atol=atol)


@pytest.mark.parametrize("sizes", [(2, 100, 30), (7, 333, 21), (19, 70, 9), (32, 64, 16)])
def test_all_rows_columns_and_terms(variant: str, sizes: tuple[int, int, int]):
    """Whole tiles and parts of them, on two vEUs."""
    judge(gemm(*sizes, False, False), variant, "persistent", 3e-6)


def test_several_blocks_of_columns(variant: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streamed_product, "_SUMS_BYTES", 1 << 12)
    judge(gemm(9, 300, 20, False, False, "f64"), variant, "serial", 1e-14)


@pytest.mark.parametrize("sizes", [(3, 70, 9), (11, 33, 17)])
def test_in_emulation(variant: str, sizes: tuple[int, int, int]):
    """It reads and writes nothing beyond its operands and scratch."""
    source = gemm(*sizes, False, False)
    arrays = drawn(irkit.parse(source))
    (wanted,) = run_module(irkit.parse(source), WeightStore(), arrays)
    op, root = rooted(source)
    binding = bind(op, root, registry.find("cpu", variant), 1)
    got = np.full(wanted.size, np.nan, np.float32)
    for task in range(op.tasks):
        emulate(registry.find("cpu", variant), binding, [*arrays, got], task, op.tasks, 1)
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("line", "types", "result"),
    [
        ("C(m, n) +=! A(m, k) * B(k, n)", "tensor<40x900xf32>, tensor<900x400xf32>", "40x400"),
        ("C(m, n) +=! A(m, k) * B(k, n)", "tensor<4x90xf32>, tensor<90x400xf32>", "4x400"),
        ("C(m, n) +=! A(m, k) * B(k, n)", "tensor<4x9000xf32>, tensor<9000x40xf32>", "4x40"),
        ("C(m, n) +=! A(m, k) * B(n, k)", "tensor<4x900xf32>, tensor<400x900xf32>", "4x400"),
        ("C(m, n) +=! A(m, k) * B(k, 2 * n)", "tensor<4x900xf32>, tensor<900x799xf32>", "4x400"),
    ],
)
def test_not_of_many_rows_small_or_other_matrices(line: str, types: str, result: str):
    _, root = rooted(expression(line, types, f"tensor<{result}xf32>"))
    assert not any(registry.find("cpu", v).legal(root) for v in VARIANTS)


def test_chosen_for_few_rows_of_a_large_matrix():
    source = expression("C(m, n) +=! A(m, k) * B(k, n)", LARGE, "tensor<4x400xf32>")
    program = irkit.compile(irkit.parse(source), "cpu", device="cpu2", cache=False)
    assert "product.streamed" in program.ir()


@pytest.mark.parametrize(("dtype", "lanes", "fetched"), [("f4", 16, 2), ("f4", 8, 1), ("f8", 8, 2)])
def test_each_line_is_fetched_once_ahead_of_a_tile(dtype: str, lanes: int, fetched: int):
    """Two vectors of a row: two lines of a cache, or one where vectors are half as long."""
    pointers = {"f4": intrinsics.float32p, "f8": intrinsics.float64p}
    pointer: Any = pointers[dtype]
    add: Any = add_tile

    @njit
    def tile(a: Any, b: Any, c: Any) -> None:
        add(4, 2, lanes, 4, 7, pointer(a), 0, 7, pointer(b), 0, 40, pointer(c), 0, 40, int64(1))

    a, b, c = (np.arange(n * 40, dtype=dtype).reshape(n, 40) for n in (4, 7, 4))
    a = np.ascontiguousarray(a[:, :7])
    tile(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    np.testing.assert_array_equal(c[:, : 2 * lanes], (a @ b)[:, : 2 * lanes])
    (text,) = tile.inspect_llvm().values()
    # The loop over seven terms is unrolled.
    assert text.count("call void @llvm.prefetch") == 7 * fetched
