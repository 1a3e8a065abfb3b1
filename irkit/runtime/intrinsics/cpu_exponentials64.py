"""Exponentials, logarithms and the error function of float64 without a branch or a call."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any

import numpy as np

from irkit.runtime.intrinsics.cpu_bits import (
    copysign,
    fma,
    horner,
    power_of_two,
    times_power_of_two,
)
from irkit.runtime.intrinsics.cpu_functions import inlined
from irkit.runtime.intrinsics.cpu_functions64 import (
    EXP,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    clamped,
    exp_float64,
    logarithm_of_any,
    split_logarithm,
)

LN2, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
LOG2_E_REST = 2.0355273740931033e-17
LOG10_E, LOG10_E_REST = 0.4342944819032518, 1.098319650216765e-17
LOG10_2_HIGH, LOG10_2_LOW = 0.30102999566224753, 1.7336659603752853e-12
# Beyond these powers all is zero, or infinite.
EXP2_LOWEST, EXP2_HIGHEST = -1080.0, 1025.0
EXP_LOWEST, EXP_HIGHEST = -50.0, 711.0
# From here on 1 is lost beside the power.
LARGE = 56.0


@inlined
def exp2_float64(x: Any) -> Any:
    """2 to the power of x."""
    c = clamped(x, EXP2_LOWEST, EXP2_HIGHEST)
    n = np.rint(c)
    f = c - n
    r = f * LN2
    rest = fma(f, LN2, -r) + f * LN2_REST
    p = fma(fma(horner(r, EXP), r, 1.0), r, rest)
    return times_power_of_two(1.0 + p, n)


@inlined
def _power_less_one(x: Any) -> Any:
    """(exp(r) - 1, n) with x = r + n ln 2, for x of -50 to 711."""
    n = np.rint(x * LOG2_E)
    r = fma(n, -LN2_HIGH, x)
    rest = n * LN2_LOW
    s = r - rest
    lost = (r - s) - rest
    return s + fma(s * s, horner(s, EXP), lost), n


@inlined
def _grown(p: Any, n: Any) -> Any:
    """2^n (p + 1) - 1"""
    large = n > LARGE
    scale = power_of_two(0.0 if large else n)
    return times_power_of_two(1.0 + p, n) if large else fma(scale, p, scale - 1.0)


@inlined
def expm1_float64(x: Any) -> Any:
    """exp(x) - 1."""
    p, n = _power_less_one(clamped(x, EXP_LOWEST, EXP_HIGHEST))
    y = _grown(p, n)
    return x if x == 0.0 else y


@inlined
def _half_power(a: Any) -> Any:
    """exp(a) / 2 of a positive number; infinite where that is."""
    c = EXP_HIGHEST if a > EXP_HIGHEST else a
    p, n = _power_less_one(c)
    return times_power_of_two(1.0 + p, n - 1.0)


@inlined
def cosh_float64(x: Any) -> Any:
    """Hyperbolic cosine."""
    half = _half_power(abs(x))
    y = half + 0.25 / half
    return y if x == x else x


@inlined
def sinh_float64(x: Any) -> Any:
    """Hyperbolic sine; near zero of exp(x) - 1."""
    a = abs(x)
    half = _half_power(a)
    t = expm1_float64(1.0 if a > 1.0 else a)
    y = half - 0.25 / half if a > 1.0 else 0.5 * (t + t / (t + 1.0))
    return copysign(y, x) if x == x else x


@inlined
def _logarithm(x: Any) -> Any:
    """(e, h, l) with x = 2^e * exp(h + l), of a positive number."""
    e, f, half, p = split_logarithm(x)
    high = f - half
    return e, high, ((f - high) - half) + p


@inlined
def log2_float64(x: Any) -> Any:
    """Logarithm of base 2."""
    e, high, low = _logarithm(x)
    top = high * LOG2_E
    rest = fma(high, LOG2_E, -top) + fma(high, LOG2_E_REST, low * LOG2_E)
    y = e + top
    # What the sum loses: of a small e too.
    t = y - e
    lost = (e - (y - t)) + (top - t)
    return logarithm_of_any(x, y + (lost + rest))


@inlined
def log10_float64(x: Any) -> Any:
    """Logarithm of base 10."""
    e, high, low = _logarithm(x)
    top = high * LOG10_E
    rest = fma(high, LOG10_E, -top) + fma(high, LOG10_E_REST, low * LOG10_E)
    # The product of an exponent and the first part is exact.
    whole = e * LOG10_2_HIGH
    y = whole + top
    t = y - whole
    lost = (whole - (y - t)) + (top - t)
    return logarithm_of_any(x, y + (lost + fma(e, LOG10_2_LOW, rest)))


TWO_OVER_ROOT_PI, TWO_OVER_ROOT_PI_REST = 1.1283791670955126, 1.533545961316588e-17
ERF_LIMIT = 6.0
ERF_NEAR = (
    -8.101869549660951792e-10,
    1.388462520914768779e-8,
    -1.624658795725962875e-7,
    1.645239241441423492e-6,
    -0.00001492513723136160353,
    0.0001205531550982772467,
    -0.0008548326651491141832,
    0.005223977620813341889,
    -0.026866170644835377,
    0.1128379167095438718,
    -0.3761263890318374941,
)
# exp(x^2) (1 - erf(x)) of (x - 2) / (x + 2), for x of 1 to 6.
ERF_FAR = (
    -2.228129576372350174e-7,
    4.146302183268487723e-6,
    1.859427387429401975e-6,
    -0.00001416633906911710816,
    -0.00002764072782191285358,
    0.00002756035275667831323,
    0.0001743647725725673693,
    0.0000435526535981788277,
    -0.0009819771114740715311,
    -0.0008471431229415333417,
    0.006997461739200574742,
    0.00373289240165644815,
    -0.07897858101571269368,
    0.2416581942424876266,
    -0.4271858474139584924,
    0.2553956763105057162,
)


@inlined
def erf_float64(x: Any) -> Any:
    """Error function: an odd polynomial below one, else what exp(-x^2) takes from one."""
    a = abs(x)
    z = a * a
    rest = fma(a * z, horner(z, ERF_NEAR), a * TWO_OVER_ROOT_PI_REST)
    near = fma(a, TWO_OVER_ROOT_PI, rest)
    c = ERF_LIMIT if a > ERF_LIMIT else a
    far = 1.0 - exp_float64(-c * c) * horner((c - 2.0) / (c + 2.0), ERF_FAR)
    y = near if a < 1.0 else far
    return copysign(y, x) if x == x else x
