"""One row by a matrix: `gemm.sweep` reads the matrix as it lies, in the order of the sums' terms."""

from __future__ import annotations

import numpy as np
import pytest

import irkit


def by_matrix(x, a):
    return x @ a


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("terms", [1, 3, 4, 7, 130])
@pytest.mark.parametrize("columns", [2, 5, 2048, 5001])
def test_sums_are_numpys(dtype, terms: int, columns: int):
    rng = np.random.default_rng(terms * columns)
    x, a = rng.normal(size=terms).astype(dtype), rng.normal(size=(terms, columns)).astype(dtype)
    compiled = irkit.jit(by_matrix, target="cpu")
    got, want = compiled(x, a), x.astype(np.float64) @ a.astype(np.float64)
    scale = np.abs(x.astype(np.float64)) @ np.abs(a.astype(np.float64))
    assert (np.abs(got - want) <= 2 * terms * np.finfo(dtype).eps * scale).all()


def test_a_row_by_a_matrix_is_swept():
    compiled = irkit.jit(by_matrix, target="cpu")
    compiled.compile(np.ones(300), np.ones((300, 400)))
    first = compiled.ir("task").partition("alternatives = [")[2]
    assert first.startswith('#task.alternative<{rkernel = "gemm.sweep"')


def test_what_is_not_finite_stays_in_its_column():
    x, a = np.ones(9), np.ones((9, 3000))
    a[5, 7], a[8, 11] = np.inf, np.nan
    got = irkit.jit(by_matrix, target="cpu")(x, a)
    assert np.isinf(got[7])
    assert np.isnan(got[11])
    assert np.isfinite(np.delete(got, [7, 11])).all()
