"""A matrix by one column: `gemm.dot_eight` reads eight rows at a time, where there are so many."""

from __future__ import annotations

import numpy as np
import pytest

import irkit


def by_column(a, x):
    return a @ x


def weighed(a, b, x):
    return 1.5 * a @ x + 1.25 * b @ x


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
# Eight once and several times, with four or none and up to three that are left.
@pytest.mark.parametrize("rows", [8, 9, 15, 31, 130])
@pytest.mark.parametrize("terms", [1, 512, 515, 1001])
def test_sums_are_numpys(dtype, rows: int, terms: int):
    rng = np.random.default_rng(rows * terms)
    a, b = (rng.normal(size=(rows, terms)).astype(dtype) for _ in range(2))
    x = rng.normal(size=terms).astype(dtype)
    wide = [v.astype(np.float64) for v in (a, b, x)]
    for function, given, exact in (
        (by_column, (a, x), by_column(wide[0], wide[2])),
        (weighed, (a, b, x), weighed(*wide)),
    ):
        got = irkit.jit(function, target="cpu")(*given)
        assert got.dtype == dtype
        scale = 3 * (np.abs(wide[0]) + np.abs(wide[1])) @ np.abs(wide[2])
        assert (np.abs(got - exact) <= 2 * (terms + 4) * np.finfo(dtype).eps * scale).all()


@pytest.mark.parametrize(
    ("rows", "terms", "rkernel"),
    [(2000, 2000, "gemm.dot_eight"), (7, 2000, "gemm.dot"), (2000, 511, "gemm.dot")],
)
def test_long_rows_are_read_by_eights(rows: int, terms: int, rkernel: str):
    compiled = irkit.jit(by_column, target="cpu")
    compiled.compile(np.ones((rows, terms)), np.ones(terms))
    first = compiled.ir("task").partition("alternatives = [")[2]
    assert first.startswith(f'#task.alternative<{{rkernel = "{rkernel}"')


def test_matrices_that_are_made_where_they_are_read():
    u, v, x = np.arange(19.0), np.arange(533.0), np.ones(533)

    def of_outer(u, v, x):
        return (np.outer(u, v) + 1) @ x

    got = irkit.jit(of_outer, target="cpu")(u, v, x)
    np.testing.assert_allclose(got, of_outer(u, v, x))


def test_what_is_not_finite_stays_in_its_row():
    a, x = np.ones((43, 600)), np.ones(600)
    a[5, 7], a[41, 11] = np.inf, np.nan
    got = irkit.jit(by_column, target="cpu")(a, x)
    assert np.isinf(got[5])
    assert np.isnan(got[41])
    assert np.isfinite(np.delete(got, [5, 41])).all()
