"""A matrix times a vector in vector registers: rows of any number and length, one term or two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irkit
from irkit.runtime.intrinsics import cpu_dots
from irkit.runtime.intrinsics.cpu import float32p, float64p

LENGTHS = (1, 3, 4, 7, 8, 15, 16, 31, 47, 64, 65)
ROWS = (0, 1, 3, 4, 5, 7, 8, 9, 12, 13, 16, 21)
POINTERS: dict[str, Any] = {"float32": float32p, "float64": float64p}
# Numba's stubs give intrinsics one parameter more.
dot_rows: Any = cpu_dots.dot_rows
dot_rows_of_two: Any = cpu_dots.dot_rows_of_two
dot_rows_of_each: Any = cpu_dots.dot_rows_of_each
dot_rows_of_two_each: Any = cpu_dots.dot_rows_of_two_each


def one_term(pointer: Any, k: int) -> Any:
    @njit
    def run(rows: int, x: Any, w: Any, y: Any) -> None:
        px, pw, py = pointer(x.ctypes.data), pointer(w.ctypes.data), pointer(y.ctypes.data)
        dot_rows(rows, k, px, 2, pw, 3, py, 1)

    return run


def two_terms(pointer: Any, k0: int, k1: int) -> Any:
    @njit
    def run(rows: int, x: Any, w0: Any, w1: Any, y: Any) -> None:
        px, py = pointer(x.ctypes.data), pointer(y.ctypes.data)
        p0, p1 = pointer(w0.ctypes.data), pointer(w1.ctypes.data)
        dot_rows_of_two(rows, k0, px, 2, p0, 3, k1, px, 1, p1, 0, py, 1)

    return run


@pytest.mark.parametrize("dtype", POINTERS)
@pytest.mark.parametrize("k", LENGTHS)
def test_rows_of_one_term(dtype: str, k: int) -> None:
    run, rng = one_term(POINTERS[dtype], k), np.random.default_rng(k)
    for rows in ROWS:
        # Sums of these are exact in any order.
        x = rng.integers(-9, 10, 2 + k).astype(dtype)
        w = rng.integers(-9, 10, 3 + rows * k).astype(dtype)
        y = np.full(rows + 2, 0.5, dtype)
        run(rows, x, w, y)
        np.testing.assert_array_equal(y[1:-1], w[3:].reshape(rows, k) @ x[2:])
        # Nothing beside the sums is written.
        assert y[0] == 0.5
        assert y[-1] == 0.5


@pytest.mark.parametrize(("k0", "k1"), [(1, 64), (16, 3), (33, 20), (64, 64)])
def test_rows_of_two_terms(k0: int, k1: int) -> None:
    run, rng = two_terms(float32p, k0, k1), np.random.default_rng(k0)
    for rows in ROWS:
        x = rng.integers(-9, 10, 2 + max(k0, k1)).astype(np.float32)
        w0 = rng.integers(-9, 10, 3 + rows * k0).astype(np.float32)
        w1 = rng.integers(-9, 10, rows * k1).astype(np.float32)
        y = np.full(rows + 2, 0.5, np.float32)
        run(rows, x, w0, w1, y)
        meant = w0[3:].reshape(rows, k0) @ x[2 : 2 + k0] + w1.reshape(rows, k1) @ x[1 : 1 + k1]
        np.testing.assert_array_equal(y[1:-1], meant)
        assert y[0] == 0.5
        assert y[-1] == 0.5


def each(pointer: Any, count: int, k: int) -> Any:
    @njit
    def run(rows: int, x: Any, w: Any, y: Any, step: int) -> None:
        px, pw, py = pointer(x.ctypes.data), pointer(w.ctypes.data), pointer(y.ctypes.data)
        dot_rows_of_each(count, rows, k, px, 2, pw, 3, py, 1, step)

    return run


@pytest.mark.parametrize("dtype", POINTERS)
@pytest.mark.parametrize(
    ("count", "k"), [(1, 20), (2, 3), (2, 64), (3, 16), (3, 47), (4, 33), (4, 1)]
)
def test_rows_of_several_vectors(dtype: str, count: int, k: int) -> None:
    run, rng = each(POINTERS[dtype], count, k), np.random.default_rng(k)
    for rows in ROWS:
        x = rng.integers(-9, 10, 2 + count * k).astype(dtype)
        w = rng.integers(-9, 10, 3 + rows * k).astype(dtype)
        y = np.full(1 + count * (rows + 2), 0.5, dtype)
        run(rows, x, w, y, rows + 2)
        meant = np.full((count, rows + 2), 0.5, dtype)
        meant[:, :rows] = x[2:].reshape(count, k) @ w[3:].reshape(rows, k).T
        np.testing.assert_array_equal(y[1:].reshape(count, rows + 2), meant)
        assert y[0] == 0.5


@pytest.mark.parametrize(("count", "k0", "k1"), [(2, 16, 3), (3, 20, 33), (4, 1, 64)])
def test_rows_of_two_terms_and_several_vectors(count: int, k0: int, k1: int) -> None:
    @njit
    def run(rows: int, x0: Any, w0: Any, x1: Any, w1: Any, y: Any) -> None:
        p0, p1, py = float32p(x0.ctypes.data), float32p(x1.ctypes.data), float32p(y.ctypes.data)
        q0, q1 = float32p(w0.ctypes.data), float32p(w1.ctypes.data)
        dot_rows_of_two_each(count, rows, k0, p0, 0, q0, 0, k1, p1, 0, q1, 0, py, 0, rows + 1)

    rng = np.random.default_rng(count)
    for rows in ROWS:
        sizes = [(count, k0), (rows, k0), (count, k1), (rows, k1)]
        x0, w0, x1, w1 = (rng.integers(-9, 10, s).astype(np.float32) for s in sizes)
        y = np.full((count, rows + 1), 0.5, np.float32)
        run(rows, x0, w0, x1, w1, y)
        np.testing.assert_array_equal(y[:, :rows], x0 @ w0.T + x1 @ w1.T)
        assert (y[:, rows] == 0.5).all()


def test_infinities_and_nan_reach_their_row_alone() -> None:
    run = one_term(float32p, 20)
    x, w = np.ones(22, np.float32), np.ones(3 + 10 * 20, np.float32)
    w[3 + 2 * 20 + 19], w[3 + 9 * 20], x[5] = np.nan, np.inf, -0.0
    y = np.zeros(12, np.float32)
    run(10, x, w, y)
    np.testing.assert_array_equal(y[1:-1], [19, 19, np.nan, 19, 19, 19, 19, 19, 19, np.inf])


MODULE = """
!x = tensor<{b}x{k}xf32>
!h = tensor<{b}x{u}xf32>
!w = tensor<{g}x{k}xf32>
!r = tensor<{g}x{u}xf32>
!d = tensor<{g}xf32>
func.func @main(%x: !x, %h: !h, %c: !h, %w: !w, %r: !r, %d: !d) -> (!h, !h)
    attributes {{irkit.fastmath = #arith.fastmath<afn>}} {{
  %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %d : (!x, !h, !h, !w, !r, !d) -> (!h, !h)
  func.return %h1, %c1 : !h, !h
}}
"""


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("b", "k", "u", "device"),
    # More units than are summed at once, with rows left over; rTasks that begin between eights.
    # Rows that are left behind fours.
    [
        (1, 5, 3, "cpu1"),
        (2, 16, 67, "cpu1"),
        (1, 40, 130, "cpu1"),
        (3, 9, 150, "cpu2"),
        (7, 12, 21, "cpu1"),
        (9, 17, 35, "cpu2"),
    ],
)
def test_cells_of_any_size(b: int, k: int, u: int, device: str) -> None:
    program = irkit.compile(irkit.parse(MODULE.format(b=b, k=k, u=u, g=4 * u)), device=device)
    assert f"recurrent_cell.{'' if b == 1 else 'wide_'}terms2" in program.ir("schedule")
    rng = np.random.default_rng(u)
    shapes = [(b, k), (b, u), (b, u), (4 * u, k), (4 * u, u), (4 * u,)]
    given = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    x, h, c, w, r, d = (v.astype(np.float64) for v in given)
    gates = np.split(x @ w.T + h @ r.T + d, 4, axis=1)
    i, o, f = (sigmoid(v) for v in gates[:3])
    cell = f * c + i * np.tanh(gates[3])
    got = program(*given)
    np.testing.assert_allclose(got[1], cell, rtol=0, atol=1e-5)
    np.testing.assert_allclose(got[0], o * np.tanh(cell), rtol=0, atol=1e-5)
