"""Rows reduced in vector registers, and the softmax that is made of them."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from numba import njit

import irkit
from irkit.runtime.intrinsics import cpu_rows
from irkit.runtime.intrinsics.cpu import float32p, float64p

LENGTHS = (1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000)
POINTERS: dict[str, Any] = {"float32": float32p, "float64": float64p}


def reduced(name: str, pointer: Any) -> Any:
    function = getattr(cpu_rows, name)

    @njit
    def of_row(row: Any) -> Any:
        return function(pointer(row.ctypes.data), row.size)

    return of_row


@pytest.mark.parametrize("dtype", POINTERS)
@pytest.mark.parametrize(
    ("name", "meaning"),
    [("row_sum", np.sum), ("row_maximum", np.max), ("row_minimum", np.min)],
)
def test_rows_of_any_length(dtype: str, name: str, meaning: Any) -> None:
    function, rng = reduced(name, POINTERS[dtype]), np.random.default_rng(0)
    for length in LENGTHS:
        # Sums of these are exact in any order.
        row = rng.integers(-1000, 1000, length).astype(dtype)
        assert function(row) == meaning(row), length
        row[rng.integers(length)] = np.inf
        assert function(row) == meaning(row), length
        row[rng.integers(length)] = np.nan
        assert np.isnan(function(row)), length
    zeros = np.full(5, -0.0, dtype)
    assert np.signbit(function(zeros))


@pytest.mark.parametrize("dtype", POINTERS)
@pytest.mark.parametrize("name", ["row_largest", "row_largest_ahead"])
def test_the_largest_number_of_any_length(name: str, dtype: str) -> None:
    function, rng = reduced(name, POINTERS[dtype]), np.random.default_rng(0)
    for length in LENGTHS:
        row = rng.integers(-1000, 1000, length).astype(dtype)
        assert function(row) == np.max(row), length
        row[rng.integers(length)] = np.nan
        assert function(row) == np.fmax.reduce(row, initial=-np.inf), length


@pytest.mark.parametrize("dtype", POINTERS)
def test_squares_of_any_length(dtype: str) -> None:
    function, rng = reduced("row_squares", POINTERS[dtype]), np.random.default_rng(0)
    for length in LENGTHS:
        row = rng.integers(-100, 100, length).astype(dtype)
        assert function(row) == np.sum(row * row), length
        row[rng.integers(length)] = np.nan
        assert np.isnan(function(row)), length


@pytest.mark.parametrize("dtype", POINTERS)
def test_what_is_fetched_ahead_need_not_be_memory(dtype: str) -> None:
    """The last row is followed by a page that may not be read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    row = np.frombuffer(memory, dtype, page // np.dtype(dtype).itemsize)
    row[:] = np.arange(row.size)
    protect = ctypes.CDLL(None).mprotect
    if protect(ctypes.c_void_p(row.ctypes.data + page), ctypes.c_size_t(page), 0) != 0:
        pytest.skip("a page cannot be protected here")
    assert reduced("row_largest_ahead", POINTERS[dtype])(row) == row.size - 1


FUSED = """
func.func @main(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {irkit.fastmath = #arith.fastmath<afn>} {
  %s = graph.softmax %x {axis = 1 : i64} : (tensor<?x40xf32>) -> tensor<?x40xf32>
  %y = graph.mul %s, %x : (tensor<?x40xf32>, tensor<?x40xf32>) -> tensor<?x40xf32>
  func.return %y : tensor<?x40xf32>
}
"""


def test_what_is_computed_of_a_softmax_is_computed_once() -> None:
    program = irkit.compile(irkit.parse(FUSED), "cpu")
    assert 'rkernel = "softmax.buffered"' in program.ir("schedule")
    x = np.random.default_rng(0).standard_normal((5, 40)).astype("float32")
    raised = np.exp(x, dtype=np.float64)
    wanted = raised / raised.sum(axis=1, keepdims=True) * x
    np.testing.assert_allclose(program(x), wanted, atol=4e-7)


MODULE = """
func.func @main(%x: tensor<?x{n}x{dtype}>) -> tensor<?x{n}x{dtype}>
    attributes {{irkit.fastmath = #arith.fastmath<{flags}>}} {{
  %y = graph.softmax %x {{axis = 1 : i64}} : (tensor<?x{n}x{dtype}>) -> tensor<?x{n}x{dtype}>
  func.return %y : tensor<?x{n}x{dtype}>
}}
"""


@pytest.mark.parametrize("n", [1, 5, 7, 32, 64, 200])
@pytest.mark.parametrize(("dtype", "bound"), [("f32", 4e-7), ("f64", 1e-15)])
def test_softmax(n: int, dtype: str, bound: float) -> None:
    module = irkit.parse(MODULE.format(n=n, dtype=dtype, flags="afn"))
    program = irkit.compile(module, "cpu")
    # Short rows are taken many at once: here more than are.
    kind = "softmax.short" if 5 <= n < 32 else "softmax.in_memory"
    assert kind in program.ir("schedule") or n == 32 or (n == 1 and dtype == "f64")
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((9 if n > 32 else 500, n)) * 20).astype(
        "float32" if dtype == "f32" else "float64"
    )
    wide = np.exp(x.astype(np.longdouble) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        program(x), wide / wide.sum(axis=1, keepdims=True), rtol=0, atol=bound
    )
    x[0, 0], x[1, n - 1], x[2], x[3] = np.nan, np.inf, np.nan, -np.inf
    # Of infinity and NaN, and of NaN beside what is below all numbers.
    x[4, 0], x[4, n - 1] = np.inf, np.nan
    x[5], x[5, n // 2] = -np.inf, np.nan
    assert np.isnan(program(x)[:6]).all()
    assert not np.isnan(program(x)[6:]).any()


def test_softmax_of_the_c_library() -> None:
    module = irkit.parse(MODULE.format(n=9, dtype="f32", flags="none"))
    assert "softmax.rows" in irkit.compile(module, "cpu").ir("schedule")
