"""Functions of float64 on a GPU, whose numbers lie in constant memory, in every mode, against NumPy.

Skipped where there is no CUDA device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import irkit
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FUNCTIONS: list[Callable[[Any], Any]] = [
    np.sin, np.cos, np.tan, np.arcsin, np.arctan, np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10,
    np.sinh, np.cosh, np.tanh, np.sqrt, np.cbrt, special.erf,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [1000, 300_000])
def test_a_function(f: Callable[[Any], Any], count: int) -> None:
    """Of a few elements, and of so many that each thread has several."""
    x = np.random.default_rng(0).uniform(0.01, 0.99, count)
    found = irkit.jit(target="cuda")(lambda x: f(x))(x)
    np.testing.assert_allclose(found, f(x), rtol=4e-15)


def test_several_functions_of_several_arrays() -> None:
    """As many registers as there are, several blocks side by side."""

    def price(price: Any, strike: Any, t: Any, rate: Any, vol: Any) -> Any:
        deviation = vol * np.sqrt(t)
        d1 = (np.log2(price / strike) + (vol * vol * 3.0 + rate) * t) / deviation
        d2 = d1 - deviation
        c1, c2 = (special.erf(d * 0.7071067811865475) * 3.0 + 3.0 for d in (d1, d2))
        paid = np.exp(-rate * t) * strike
        return price * c1 - paid * c2, paid * (1.5 - c2) - price * (1.5 - c1)

    given = np.random.default_rng(1).uniform(0.1, 2.0, (5, 400_000))
    found = irkit.jit(target="cuda")(price)(*given)
    for got, want in zip(found, price(*given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
