"""Divisions by constants as fused operations: the proof against all numbers of a small format, and programs
against NumPy's bits."""

# pyright: basic, reportPrivateUsage=false

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f64

import irkit
from irkit.rkernels.binding import reciprocals
from irkit.rkernels.binding.reciprocals import Format, reciprocal_of

RNG = np.random.default_rng(7)
DIVISORS = [
    3.0,
    0.1,
    -0.7,
    10.0,
    1e-3,
    math.pi,
    -1e40,
    6.0,
    2.0**0.5,
    1 + 2**-52,
    2 - 2**-52,
    7e-50,
]


def rounded(value: Fraction, bits: int) -> Fraction:
    return reciprocals._rounded(value, bits)


@pytest.mark.parametrize("bits", [4, 5, 6, 7, 8])
def test_of_a_small_format_all_that_passes_is_right(bits: int) -> None:
    """And nearly all that is right passes: what is refused has an x that is not."""
    form, passed = Format(bits, 4, 0.0), 0
    for significand in range(2 ** (bits - 1) + 1, 2**bits):
        exact = Fraction(1, significand)
        high = reciprocals._rounded(exact, bits, down=True)
        low = rounded(exact - high, bits)
        right = all(
            rounded(x * high + rounded(x * low, bits), bits) == rounded(x * exact, bits)
            for x in range(2 ** (bits - 1), 2**bits)
        )
        known = reciprocals._reciprocal(significand / 2 ** (bits - 1), form)
        assert (known is not None) == right, significand
        passed += right
    assert passed >= 2 ** (bits - 1) * 0.7


def test_what_is_left_to_a_division() -> None:
    for divisor in (0.0, -0.0, math.inf, math.nan, 2.0, -0.25, 1e-320, 1e300):
        assert reciprocal_of(divisor, f64) is None
    assert reciprocal_of(3.0, f16) is None
    several = [reciprocal_of(float(y), f64) for y in RNG.uniform(1, 2, 300)]
    assert 1 <= several.count(None) <= 45


def awkward(dtype: Any) -> Any:
    """Zeros, the least and largest of all kinds, NaN, quotients that are subnormal or overflow, others."""
    info = np.finfo(dtype)
    ends = [info.tiny, info.smallest_subnormal, info.max, info.eps, 1.0, np.inf, 0.0, np.nan]
    random = RNG.integers(0, 2**63, 5000, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    bits = random if dtype == np.float64 else (random >> np.uint64(32)).astype(np.uint32)
    near = np.arange(1, 900, dtype=dtype) * info.smallest_subnormal
    values = np.concatenate([np.array(ends, dtype), bits.view(dtype), near])
    return np.concatenate([values, -values, RNG.standard_normal(4003).astype(dtype)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_have_the_bits_of_a_division(dtype: Any, divisor: float) -> None:
    program = irkit.jit(target="cpu")(lambda x: x / dtype(divisor))
    x = awkward(dtype)
    for given in (x, x[:1], x[:7], np.zeros(40, dtype), x[np.isfinite(x)], np.ones(64, dtype)):
        got, want = program(given), given / dtype(divisor)
        assert np.array_equal(np.isnan(got), np.isnan(want))
        numbers = ~np.isnan(want)
        unsigned = np.uint32 if dtype == np.float32 else np.uint64
        assert np.array_equal(got[numbers].view(unsigned), want[numbers].view(unsigned))


@pytest.mark.parametrize("divisor", [3.0, 1 + 2**-52, 1.9, 5 / 7])
def test_quotients_near_the_middle_of_two_floats(divisor: float) -> None:
    """Those that could be wrong at all, and their neighbours."""
    whole = int(math.ldexp(math.frexp(divisor)[0], 53))
    hard = [x for x in reciprocals._near(whole, 53)]
    x = np.array([float(h + off) for h in [*hard, 2**52, 2**53 - 3] for off in (-1, 0, 1, 2)])
    program = irkit.jit(target="cpu")(lambda x: x / divisor)
    for scale in (1.0, 2.0**-200, -(2.0**300)):
        many = np.tile(x * scale, 8)
        assert np.array_equal(program(many), many / divisor)


def test_what_is_emitted() -> None:
    program = irkit.jit(target="cpu")(lambda x: (x / 3, x / 4, x / 0.0))
    with np.errstate(all="ignore"):
        program(np.ones(50))
    assert program.source.count("quotient(v") == 1
