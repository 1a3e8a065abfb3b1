"""Functions of `numpy.linalg` of small matrices in loops, which are part of the program, beside LAPACK's."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit
from tests.unit.jitted import check

compiled = irkit.jit(target="cpu")
RNG = np.random.default_rng(5)
TOLERANCE = {np.float64: 1e-9, np.float32: 5e-3, np.int64: 1e-9}


def solves(a, b):
    x = b
    for _ in range(9):
        x = np.linalg.solve(a, x) * 0.5 + b
    return x


def inverts(a, b):
    total = np.zeros(a.shape)
    for k in range(9):
        total = total + np.linalg.inv(a + k * np.eye(len(a)))
    return total


def determines(a, b):
    found = np.zeros(9, b.dtype)
    for k in range(9):
        found[k] = np.linalg.det(a * (k - 4))
    return found


def factorises(a, b):
    total = np.zeros(a.shape)
    for k in range(9):
        spd = a @ a.T + (k + 1) * np.eye(len(a))
        total = total + np.linalg.cholesky(spd) - np.linalg.cholesky(np.triu(spd), upper=True)
    return total


def lowers(a, b):
    total = np.zeros(a.shape)
    for k in range(9):
        total = total + np.linalg.cholesky(a - k * np.eye(len(a)))
    return total


def matrix(n, dtype):
    """A matrix whose rows must change places."""
    return ((RNG.standard_normal((n, n)) + 4 * np.eye(n)[RNG.permutation(n)]) * 8).astype(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [1, 2, 3, 8, *RNG.integers(2, 9, 2).tolist()])
@pytest.mark.parametrize("function", [solves, inverts, determines, factorises])
def test_small_matrices(function, n, dtype):
    floats = np.float32 if dtype is np.float32 else np.float64
    a, b = matrix(n, dtype), RNG.standard_normal(n).astype(floats)
    rounding = TOLERANCE[dtype] * (1 + np.abs(function(a, b)).max())
    traced = check(function, a, b, tolerance=rounding)
    assert "host" not in traced.explain()


@pytest.mark.parametrize("shape", [(4, 1), (4, 3), (4, 8)])
def test_several_right_hand_sides(shape):
    check(solves, matrix(4, float), RNG.standard_normal(shape), tolerance=1e-9)


@pytest.mark.parametrize("a", [np.zeros((2, 2)), np.diag([1.0, 0, 2]), np.ones((3, 3))])
def test_determinants_of_singular_matrices_are_0(a):
    check(determines, a, np.ones(1))


def test_infinity_stays_in_its_row():
    check(solves, np.diag([1.0, np.inf, 2.0]), np.ones(3), tolerance=1e-12)


def test_compiled_in_loops_until_data_say_so():
    def newton(x):
        n = 0
        while np.abs(x).sum() > 1e-9:
            jacobian = np.array([[2 * x[0] + 2, x[1]], [1, 3 + x[1]]])
            x = x - np.linalg.solve(jacobian, np.array([x[0] ** 2 + 2 * x[0], x[0] + 3 * x[1]]))
            n += 1
        return x, n

    x = np.array([0.5, 0.2])
    traced = check(newton, x, tolerance=1e-12, jit=compiled)
    assert "host" not in traced.explain()


@pytest.mark.parametrize(
    ("function", "a", "message"),
    [
        (solves, np.array([[1.0, 2], [2, 4]]), "Singular matrix"),
        (inverts, np.diag([0.0, 1.0, 2.0]), "Singular matrix"),
        (lowers, np.eye(3) * 4, "not positive definite"),
    ],
)
def test_numpys_error(function, a, message):
    b = np.ones(len(a))
    with pytest.raises(np.linalg.LinAlgError):
        function(a.copy(), b)
    before = a.copy()
    with pytest.raises(np.linalg.LinAlgError, match=message):
        compiled(function)(a, b)
    np.testing.assert_array_equal(a, before)


def test_what_is_called_as_before():
    def outside(a):
        return np.linalg.inv(a)

    def larger(a):
        for _ in range(9):
            a = np.linalg.inv(a)
        return a

    for function, a in [(outside, matrix(3, float)), (larger, matrix(9, float))]:
        traced = check(function, a, tolerance=1e-9, jit=compiled)
        assert "host task: numpy.linalg.inv" in traced.explain()
