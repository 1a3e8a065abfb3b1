"""Elementary functions of float32 without a branch or a call, which LLVM computes in vector registers.

They stand for the C library's where the IR grants `afn` to an op. NaN, infinities, denormals and signed zeros
give what the C library gives; `cpu_approximations.py` says how far all else may be from the exact value. The
methods are the textbook ones (J.-M. Muller, Elementary Functions, chapters 9 to 11): reduce the argument to a
small interval, take a polynomial there (`tools/minimax.py` prints it), put the parts together.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from irkit.runtime.intrinsics.cpu_bits import (
    copysign,
    exponent,
    fma,
    horner,
    mantissa,
    power_of_two,
    times_power_of_two,
)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that becomes part of the loop which calls it."""
    return njit(function, forceinline=True, error_model="numpy", no_cpython_wrapper=True)


def singles(*values: float) -> tuple[np.float32, ...]:
    """Constants of float32."""
    return tuple(np.float32(v) for v in values)


ZERO, HALF, ONE, TWO = singles(0.0, 0.5, 1.0, 2.0)
INFINITY, NAN = singles(math.inf, math.nan)
LOG2_E = np.float32(1 / math.log(2))
# ln 2 in two parts; the product of the first and an exponent is exact.
LN2_HIGH, LN2_LOW = singles(0.693359375, -2.12194440054690583e-4)
# Beyond these all is zero, or infinite.
EXP_LOWEST, EXP_HIGHEST = singles(-104.0, 89.0)
EXP = singles(
    0.001392617611993557888,
    0.008363173074513710903,
    0.04166655466205053398,
    0.1666657702559798819,
    0.5,
)


@inlined
def exp_between(x: Any) -> Any:
    """exp(x) for EXP_LOWEST <= x <= EXP_HIGHEST."""
    n = np.rint(x * LOG2_E)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    return times_power_of_two(fma(fma(horner(r, EXP), r, ONE), r, ONE), n)


@inlined
def exp_float32(x: Any) -> Any:
    """e to the power of x."""
    # NaN is neither below nor above.
    above = EXP_LOWEST if x < EXP_LOWEST else x
    return exp_between(EXP_HIGHEST if above > EXP_HIGHEST else above)


TANH_NEAR, TANH_LIMIT = singles(0.6, 9.1)
TANH = singles(
    -0.006269119719649729174,
    0.02111095904951478965,
    -0.05387394884864333359,
    0.1333291536698745339,
    -0.333333303327315471,
)


@inlined
def tanh_float32(x: Any) -> Any:
    """Hyperbolic tangent: an odd polynomial near zero, else t / (t + 2) of t = exp(2 |x|) - 1."""
    a = abs(x)
    z = a * a
    near = fma(a * z, horner(z, TANH), a)
    d = TWO * (TANH_LIMIT if a > TANH_LIMIT else a)
    n = np.rint(d * LOG2_E)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, d))
    scale = power_of_two(n)
    t = fma(scale, fma(horner(r, EXP) * r, r, r), scale - ONE)
    return copysign(near if a < TANH_NEAR else t / (t + TWO), x)


SMALLEST_NORMAL, TWO_23, TWENTY_THREE = singles(2.0**-126, 2.0**23, 23.0)
LOG = singles(
    0.06971611471451177832,
    -0.1147973384663763556,
    0.1168541992348673931,
    -0.1242568733145110611,
    0.142490576456974804,
    -0.1666780231950125407,
    0.2000071574889210174,
    -0.2499999695795088204,
    0.3333333118003004805,
)


@inlined
def log_float32(x: Any) -> Any:
    """Natural logarithm."""
    denormal = x < SMALLEST_NORMAL
    normal = x * TWO_23 if denormal else x
    e = exponent(normal) - (TWENTY_THREE if denormal else ZERO)
    f = mantissa(normal) - ONE
    square = f * f
    tail = fma(-HALF, square, fma(f * square, horner(f, LOG), e * LN2_LOW))
    y = fma(e, LN2_HIGH, f + tail)
    y = y if x < INFINITY else x
    y = y if x >= ZERO else NAN
    return -INFINITY if x == ZERO else y


@inlined
def log1p_float32(x: Any) -> Any:
    """log(1 + x), with what the sum loses added again."""
    u = ONE + x
    y = log_float32(u)
    lost = (x - (u - ONE)) / u
    y = y + lost if ZERO < u < INFINITY else y
    return x if x == ZERO else y


ERF_LIMIT = np.float32(3.95)
ERF_NEAR = singles(
    0.00007875875062685488341,
    -0.0008016864287165869529,
    0.005189087423433973986,
    -0.02685421201062641244,
    0.1128359471516021773,
    -0.3761262666672033102,
    0.128379165848350946,
)
ERF_FAR = singles(
    -2.403075101645042977e-7,
    3.69452926734816748e-6,
    -5.356946445788428749e-6,
    -0.0003143998135969374194,
    0.003787436176550447647,
    -0.02424934041419767385,
    0.1069358840879113579,
    0.6346672424048765806,
    1.128780616847847851,
)


@inlined
def erf_float32(x: Any) -> Any:
    """Error function: an odd polynomial below 1, 1 - exp(polynomial) above."""
    a = abs(x)
    near = fma(a, horner(a * a, ERF_NEAR), a)
    t = ERF_LIMIT if a > ERF_LIMIT else a
    far = ONE - exp_between(-t * horner(t, ERF_FAR))
    return copysign(near if a < ONE else far, x)


HALF_PI_HIGH = np.float32(math.pi / 2)
HALF_PI_LOW = np.float32(math.pi / 2 - float(HALF_PI_HIGH))
ATAN = singles(
    0.001488691939304759625,
    -0.00914462976059239535,
    0.02630500111006237659,
    -0.04896051402709066592,
    0.07031914250029965936,
    -0.08931826777381314397,
    0.1108826162873515873,
    -0.1428400379473353029,
    0.1999994932114188742,
    -0.3333333308107325367,
)


@inlined
def atan_float32(x: Any) -> Any:
    """Arc tangent; above 1 a right angle less that of the reciprocal."""
    a = abs(x)
    far = a > ONE
    s = -ONE / a if far else a
    z = s * s
    y = fma(s * z, horner(z, ATAN), s)
    y = HALF_PI_HIGH + (HALF_PI_LOW + y) if far else y
    return copysign(y, x)
