"""Powers by 0.5: roots of arrays by one exponent, C's `pow` of numbers and of exponents that are many."""

import numpy as np
import pytest

import irkit
from tests.unit.jitted import check, interpreted

EDGES = np.array([-np.inf, -0.0, 0.0, np.inf, -1.0, 4.0, np.nan])


def powers(x, half):
    many = np.stack([x, x])
    return (
        *(x**0.5, np.power(x, 0.5), x**half, np.power(x, half), np.power(x, np.array([0.5]))),
        *(np.power(x, x * 0 + 0.5), np.power(many, np.array([[0.5], [0.5]])), half ** x[5]),
        *(x[0] ** 0.5, x[1] ** 0.5, np.power(x[0], 0.5), np.power(x[1], half)),
        *(x[:1] ** 0.5, x[:1] ** half, np.power(x[:1], np.array([0.5])), x[0] ** half[()]),
        *(x[5] ** np.float64(0.5), x.sum() ** 0.5, -(0.5 ** x[5]), x[5] ** 2, x[5] ** -1),
    )


@pytest.mark.parametrize("exponent", [0.5, -1.0])
@pytest.mark.parametrize("jit", [interpreted, irkit.jit(target="cpu")])
def test_powers_are_numpys_at_the_edges(jit, exponent):
    # Comparison by value takes -0.0 for 0.0: what is divided by them tells.
    def with_signs(x, half):
        found = powers(x, half)
        return *found, *(1 / y for y in found)

    check(with_signs, EDGES, np.array(exponent), tolerance=1e-15, jit=jit)


def test_no_elements_to_powers_below_zero():
    check(lambda x, n: (x**-1, x**n), np.zeros((3, 0), np.int64), np.array(-2))
