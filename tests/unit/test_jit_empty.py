"""Arrays without elements: arguments, results, and what lies between."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit
from tests.unit.jitted import check, interpreted

compiled = irkit.jit(target="cpu")
ROW = np.arange(5.0)
EMPTY = [
    np.empty((0, 3)),
    np.empty((3, 0), np.float32),
    np.empty((0, 3), complex),
    np.empty((0, 6), np.int16)[::-1, ::2],
]


@pytest.mark.parametrize("jit", [interpreted, compiled])
@pytest.mark.parametrize("x", EMPTY)
def test_arguments_without_elements(x, jit):
    def several(x, row):
        x += 1
        x[...] = row[0]
        row[:0] = x.real.reshape(-1)
        row[1] = 5
        return x * 2, x.sum(), x.sum(0), x.T, x[:, ::-1], x, x @ x.T, np.concatenate([x, x])

    check(several, x, ROW, jit=jit)


def test_loops_over_nothing():
    def looped(x, row):
        for i in irkit.range(5):
            x += i
            row += x.sum()
        while row.sum() < 100:
            row += 1
        return row

    check(looped, EMPTY[0], ROW, jit=compiled)


def test_results_without_elements():
    check(lambda x: (x[:0] * 2, x * 2, np.sort(x[:0]), x[:0].cumsum()), ROW, jit=compiled)
    check(lambda x: x[:0], ROW, jit=compiled)
    check(lambda x: np.empty((0, 2), complex), ROW, jit=compiled)


@pytest.mark.parametrize("x", EMPTY)
def test_no_indices_of_nothing(x):
    check(lambda x: (x[[]], x.ravel()[[]], x.T[:, []]), x)


def test_tasks_of_the_host_with_nothing():
    check(lambda x: np.median(x, axis=1), EMPTY[0], jit=compiled)
    check(lambda x: np.linalg.inv(x), np.empty((0, 3, 3)), jit=compiled)
    check(lambda x, row: np.interp(x, row, row), EMPTY[0], ROW, jit=compiled)


def test_an_argument_without_elements_is_itself():
    x = np.empty((0, 3))
    assert compiled(lambda x: x)(x) is x
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        compiled(lambda x: x.max())(x)


def test_gradients_of_nothing():
    both = irkit.grad(lambda x, y: (x**2).sum() + (y**2).sum(), argnums=(0, 1))
    nothing, twice = both(np.empty((0, 3)), ROW)
    assert nothing.shape == (0, 3)
    assert np.array_equal(twice, 2 * ROW)
