"""Lists of numbers, known and traced, given to NumPy's functions in traced functions."""

# pyright: basic

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from scipy import special

from tests.unit.jitted import check

X = np.arange(3.0)
DTYPES = [np.float64, np.float32, np.int8, np.int64]


def known_lists(x):
    lists = np.maximum(x, [1, 2, 3]), x * [1, 2, 3], [2.5, 2, 2] - x, x == (0, 1, 5)
    return lists, np.where(x > 1, [1, 2, 3], x), np.vstack((x, [1, 2, 3])), x @ [1, 2, 3]


def universal(x):
    return np.hypot([x[0], 1], [2, x[1]]), np.sign((x[0], -1)), np.exp([[x[0]], [x[1]]]) > 1


def methods(x):
    a = np.zeros(3)
    np.add.at(a, [0, 0, 2], [x[1], x[2], 1])
    table = np.zeros((4, 3))
    np.add.at(table, (np.abs(x).astype(int), [0, 1, 1]), 2.0)
    np.subtract.at(a, (np.abs(x).astype(int) % 3,), x[1].astype(float))
    rows = np.maximum.reduce([x, x + 1]), np.add.reduce([x, x * 2], axis=1)
    return a, table, rows, np.add.accumulate([x[0], x[1], 2]), np.multiply.outer([x[0], 1], x)


def written(x):
    a = np.zeros(3)
    np.add([x[0], x[1], 1], 2, out=a)
    np.multiply(a, [x[2], 2, 3], out=(a,), where=[x[0] > 0, True, False])
    return a


def reductions(x):
    sums = np.sum([x[0], x[1]]), np.max((x[0], 1)), np.argmin([x[1], x[0]]), np.ptp([x[0], x[2]])
    return sums, np.sum([[x[0], x[1]], [x[2], 1]], axis=0), np.all([x[0] > 0, False]), np.size([x])


def shapes(x):
    joined = np.concatenate([[x[0]], x, (x[1], 2)]), np.vstack([[x[0], 1], [2, 3]])
    return (
        joined,
        np.sort([x[2], x[0], 1]),
        np.transpose([[x[0], 1], [2, x[1]]]),
        np.tile([x[0], 1], 3),
    )


def products(x):
    return (
        np.dot([x[0], x[1]], [[1, 2], [3, x[2]]]),
        np.outer([x[0], 1], [2, x[1]]),
        np.trace([x, x]),
    )


def functions_as_values(x):
    f, g = np.add, np.sum
    named = f is np.add, g is np.sum, f.__name__, isinstance(f, np.ufunc), {np.sin: 1}[np.sin]
    return reduce(np.maximum, [x, x * 2]), [h([x[0], x[1]]) for h in (np.sign, np.sum)], named


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function",
    [known_lists, universal, methods, written, reductions, shapes, products, functions_as_values],
)
def test_lists_have_the_dtypes_that_numpy_gives_them(function, dtype):
    check(function, X.astype(dtype), tolerance=1e-6)


def test_lists_of_other_libraries_and_of_loops():
    def summed(x):
        total = special.erf([x[0], x[1]])
        for i in range(10):
            total = total + np.sum([i, x[0], x[1]]) + np.max([x[2], i * 2.0])
        return total, np.linalg.norm([x[0], x[1]])

    check(summed, X, tolerance=1e-12)


def test_lists_that_are_no_arrays_stay_lists():
    def several(x):
        chosen = np.select([x > 1, x > 0], [x, x * 2], 7)
        wide = np.broadcast_arrays(x, [[1], [2]])[1]
        return chosen, wide, np.linalg.multi_dot([np.outer(x, x), np.outer(x, x), x])

    check(several, X)


def test_a_list_of_other_lengths():
    def ragged(x):
        return np.exp([x, [1, 2]])

    with pytest.raises(ValueError, match="inhomogeneous shape"):
        check(ragged, X)
