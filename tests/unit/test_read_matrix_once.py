"""Products that read one large matrix, in one pass over it."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit

RNG = np.random.default_rng(3)
CASES = {
    "chained": (lambda a, x, r: (a @ x) @ a, 1),
    "kept": (lambda a, x, r: ((a @ x) @ a, a @ x, (a @ x).sum()), 1),
    "apart": (lambda a, x, r: (r @ a, a @ x), 1),
    "transposed": (lambda a, x, r: (a.T @ r, a @ x * 2), 1),
    "transposed and chained": (lambda a, x, r: a.T @ (a @ x), 1),
    "read between": (lambda a, x, r: (a @ x + 1, r @ a), 1),
    "summed between": (lambda a, x, r: ((r @ a) * 2 + x, (a @ x).sum() - r), 1),
    "needed between": (lambda a, x, r: ((z := a @ x), (r + z.sum()) @ a), 0),
    "another shape kept": (lambda a, x, r: ((z := (a @ x).reshape(1, -1)) @ a, z + 1, z.sum()), 1),
    "of the whole": (lambda a, x, r: ((a @ x) / np.linalg.norm(a @ x)) @ a, 0),
    "the other way": (lambda a, x, r: a @ (r @ a), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_products_of_one_matrix(name):
    function, joined = CASES[name]
    a, x, r = RNG.random((1103, 2000)), RNG.random(2000), RNG.random(1103)
    f = irkit.jit(target="cpu")(function)
    got, want = f(a, x, r), function(a, x, r)
    assert f.ir("tensor").count("te.gemvt") == joined
    several = got if isinstance(got, tuple) else (got,)
    for one, wanted in zip(several, want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12)


def both(a, x, r):
    return r @ a, a @ x, (a @ x) @ a


VIEWS = {
    "as it is": lambda a: a,
    "columns first": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "some columns": lambda a: np.pad(a, ((0, 0), (3, 5)))[:, 3:-5],
    "rows backwards": lambda a: a[::-1],
    "columns backwards": lambda a: a[:, ::-1],
    "turned": lambda a: np.ascontiguousarray(a.T).T,
}


@pytest.mark.parametrize("view", VIEWS)
def test_matrices_that_lie_otherwise(view):
    a, x, r = VIEWS[view](RNG.random((701, 1000))), RNG.random(1000), RNG.random(701)
    for one, wanted in zip(irkit.jit(target="cpu")(both)(a, x, r), both(a, x, r), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12)


def of_a_part(a, x, r):
    return r @ a[1:, ::2], a[1:, ::2] @ x


def of_a_sum(a, x, r):
    b = a * 2 + 1
    return r @ b, b @ x


def updated(a, x, r):
    a += np.outer(r, x)
    return r @ a, a @ x


@pytest.mark.parametrize(
    ("function", "rows", "columns"),
    [(of_a_part, 1400, 1502), (of_a_sum, 1399, 751), (updated, 1399, 751)],
)
def test_matrices_that_are_made(function, rows, columns):
    a = RNG.random((rows, columns))
    x, r = RNG.random(751), RNG.random(1399)
    f, mine = irkit.jit(target="cpu")(function), a.copy()
    for one, wanted in zip(f(mine, x, r), function(a, x, r), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12)
    np.testing.assert_array_equal(mine, a)
    assert "te.gemvt" in f.ir("tensor")


def test_a_loop_reads_it_once_a_turn():
    def power(a, x):
        for _ in irkit.range(20):
            y = (a @ x) @ a
            x = y / np.sqrt((y * y).sum())
        return x

    a, x = RNG.random((900, 650)), RNG.random(650)
    f = irkit.jit(target="cpu")(power)
    np.testing.assert_allclose(f(a, x), power(a, x), 1e-12)
    assert f.ir("tensor").count("te.gemvt") == 2, "the first turn, and the others"


@pytest.mark.parametrize("rows", [16, 17, 23, 24, 31, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_left(rows, dtype):
    """Of eights, and of parts."""
    a = RNG.normal(size=(rows, (1 << 18) // np.dtype(dtype).itemsize)).astype(dtype)
    x, r = (RNG.normal(size=n).astype(dtype) for n in a.shape[::-1])
    f = irkit.jit(target="cpu", device="cpu2")(both)
    given = [v.astype(np.float64) for v in (a, x, r)]
    for one, wanted in zip(f(a, x, r), both(*given), strict=True):
        assert one.dtype == dtype
        assert np.abs(one - wanted).max() <= 1e4 * np.finfo(dtype).eps * np.abs(wanted).max()
    assert "te.gemvt" in f.ir("tensor")


def test_what_is_not_finite_stays_in_its_row_and_column():
    a, x, r = np.ones((701, 1000)), np.ones(1000), np.ones(701)
    a[5, 7], a[700, 11] = np.inf, np.nan
    y, z, _ = irkit.jit(target="cpu")(both)(a, x, r)
    for vector, places in ((y, [7, 11]), (z, [5, 700])):
        assert np.isinf(vector[places[0]])
        assert np.isnan(vector[places[1]])
        assert np.isfinite(np.delete(vector, places)).all()


@pytest.mark.parametrize("device", ["cpu1", "cpu3", "cpu16"])
def test_there_are_as_many_parts_as_veus(device):
    a, x, r = RNG.random((1001, 640)), RNG.random(640), RNG.random(1001)
    f = irkit.jit(target="cpu", device=device)(both)
    for one, wanted in zip(f(a, x, r), both(a, x, r), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12)
    assert f"parts = {device.removeprefix('cpu')} : i64" in f.ir("tensor")
