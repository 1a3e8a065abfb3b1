"""Elementary functions of float64 without a branch or a call; as `cpu_functions.py`, to twice the digits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from irkit.runtime.intrinsics.cpu_bits import (
    copysign,
    exponent,
    fma,
    horner,
    mantissa,
    power_of_two,
    times_power_of_two,
)
from irkit.runtime.intrinsics.cpu_functions import inlined

LOG2_E = 1 / math.log(2)
# ln 2 in two parts; the product of the first and an exponent is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
EXP_LOWEST, EXP_HIGHEST = -746.0, 710.0
EXP = (
    2.510037583256123366e-8,
    2.762007587998336659e-7,
    2.755726848031002553e-6,
    0.00002480152132236869327,
    0.0001984126986304054527,
    0.001388888891719671908,
    0.008333333333330064449,
    0.0416666666666241619,
    0.1666666666666666745,
    0.5,
)


@inlined
def clamped(x: Any, lowest: Any, highest: Any) -> Any:
    """x, or the limit beyond which it is. NaN is neither below nor above."""
    above = lowest if x < lowest else x
    return highest if above > highest else above


@inlined
def exp_float64(x: Any) -> Any:
    """e to the power of x."""
    c = clamped(x, EXP_LOWEST, EXP_HIGHEST)
    n = np.rint(c * LOG2_E)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, c))
    return times_power_of_two(fma(fma(horner(r, EXP), r, 1.0), r, 1.0), n)


TANH_NEAR, TANH_LIMIT = 0.6, 20.0
TANH = (
    -0.00001833596211003941992,
    0.00008154737806525365138,
    -0.000232251040679385094,
    0.0005880541548418729,
    -0.001455464802800744916,
    0.003592083166343457503,
    -0.008863232113541473187,
    0.02186948838378092915,
    -0.05396825396475762478,
    0.1333333333333019618,
    -0.3333333333333332867,
)


@inlined
def tanh_float64(x: Any) -> Any:
    """Hyperbolic tangent: an odd polynomial near zero, else t / (t + 2) of t = exp(2 |x|) - 1."""
    a = abs(x)
    z = a * a
    near = fma(a * z, horner(z, TANH), a)
    d = 2.0 * (TANH_LIMIT if a > TANH_LIMIT else a)
    n = np.rint(d * LOG2_E)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, d))
    scale = power_of_two(n)
    t = fma(scale, fma(horner(r, EXP) * r, r, r), scale - 1.0)
    return copysign(near if a < TANH_NEAR else t / (t + 2.0), x)


SMALLEST_NORMAL, TWO_54 = 2.0**-1022, 2.0**54
ATANH = (
    0.0730822484252170293,
    0.07665860800278020634,
    0.0909144456263086104,
    0.1111110556739753993,
    0.1428571431298774246,
    0.1999999999994975224,
    0.3333333333333334843,
)


@inlined
def split_logarithm(x: Any) -> Any:
    """(e, f, half, p) with x = 2^e * exp(f - half + p), of a positive number: log(1 + f) is
    2 atanh(f / (2 + f)), with f and half of its square split off."""
    denormal = x < SMALLEST_NORMAL
    normal = x * TWO_54 if denormal else x
    e = exponent(normal) - (54.0 if denormal else 0.0)
    f = mantissa(normal) - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    return e, f, half, s * fma(2.0 * z, horner(z, ATANH), half)


@inlined
def logarithm_of_any(x: Any, y: Any) -> Any:
    """The logarithm y of x, or what it is of zero, infinity and what has none."""
    y = y if x < math.inf else x
    y = y if x >= 0.0 else math.nan
    return -math.inf if x == 0.0 else y


@inlined
def log_float64(x: Any) -> Any:
    """Natural logarithm."""
    e, f, half, p = split_logarithm(x)
    return logarithm_of_any(x, fma(e, LN2_HIGH, f - (half - fma(e, LN2_LOW, p))))


@inlined
def log1p_float64(x: Any) -> Any:
    """log(1 + x), with what the sum loses added again."""
    u = 1.0 + x
    y = log_float64(u)
    lost = (x - (u - 1.0)) / u
    y = y + lost if 0.0 < u < math.inf else y
    return x if x == 0.0 else y


TAN_EIGHTH_PI, TAN_THREE_EIGHTHS_PI = math.sqrt(2) - 1, math.sqrt(2) + 1
QUARTER_PI, HALF_PI, HALF_PI_LOW = math.pi / 4, math.pi / 2, 6.123233995736766e-17
ATAN = (
    0.01628575685522102829,
    -0.03457056198142774688,
    0.04551593220626549169,
    -0.05230454270650244518,
    0.05878928997834775133,
    -0.06666424885738255333,
    0.07692296375032142399,
    -0.09090908753500876844,
    0.1111111110515544657,
    -0.1428571428565982761,
    0.1999999999999980453,
    -0.3333333333333333322,
)


@inlined
def atan_float64(x: Any) -> Any:
    """Arc tangent: near zero, near one and beyond, by the tangent of a difference."""
    a = abs(x)
    far, near = a > TAN_THREE_EIGHTHS_PI, a < TAN_EIGHTH_PI
    top = a if near else (-1.0 if far else a - 1.0)
    bottom = 1.0 if near else (a if far else a + 1.0)
    s = top / bottom
    z = s * s
    low = 0.0 if near else (HALF_PI_LOW if far else 0.5 * HALF_PI_LOW)
    start = 0.0 if near else (HALF_PI if far else QUARTER_PI)
    y = start + (s + fma(s * z, horner(z, ATAN), low))
    return copysign(y, x)
