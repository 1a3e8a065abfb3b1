"""Elementary functions of float32 without a branch or a call, which LLVM computes in vector registers.

They stand for the C library's where the IR grants `afn` to an op. NaN, infinities, denormals and signed zeros
give what the C library gives; `cpu_approximations.py` says how far all else may be from the exact value. The
methods are the textbook ones (J.-M. Muller, Elementary Functions, chapters 9 to 11): reduce the argument to a
small interval, take a polynomial there (`tools/minimax.py` prints it), put the parts together; or take a
rational function (`tools/rational.py`).
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
    times_two_to,
)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that becomes part of the loop which calls it."""
    return njit(function, forceinline=True, error_model="numpy", no_cpython_wrapper=True)


def singles(*values: float) -> tuple[np.float32, ...]:
    """Constants of float32."""
    return tuple(np.float32(v) for v in values)


ZERO, HALF, ONE = singles(0.0, 0.5, 1.0)
INFINITY, NAN = singles(math.inf, math.nan)
LOG2_E = np.float32(1 / math.log(2))
# ln 2 in two parts; the product of the first and an exponent is exact.
LN2_HIGH, LN2_LOW = singles(0.693359375, -2.12194440054690583e-4)
# Below it all is zero.
EXP_LOWEST = np.float32(-104.0)
EXP = singles(
    0.001392617611993557888,
    0.008363173074513710903,
    0.04166655466205053398,
    0.1666657702559798819,
    0.5,
)


# A sum with it is rounded to a whole number, which stands in its low bits.
MAGIC = np.float32(1.5 * 2.0**23)
# Powers of two from this one on are infinite.
EXP_HIGHEST = np.float32(1.5 * 2.0**23 + 129)


@inlined
def exp_float32(x: Any) -> Any:
    """e to the power of x."""
    # NaN is neither below nor above. Two limits of x would be three instructions to LLVM: the upper one is
    # that of its whole part, so that what is above grows with the rest, and is infinite.
    c = EXP_LOWEST if x < EXP_LOWEST else x
    rounded = fma(c, LOG2_E, MAGIC)
    whole = EXP_HIGHEST if rounded > EXP_HIGHEST else rounded
    n = whole - MAGIC
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, c))
    return times_two_to(fma(fma(horner(r, EXP), r, ONE), r, ONE), whole)


@inlined
def odd_below_one(x: Any, limit: Any, over: Any, under: Any) -> Any:
    """x * over(x^2) / under(x^2) between -1 and 1, of x between -limit and limit."""
    above = -limit if x < -limit else x
    c = limit if above > limit else above
    z = c * c
    y = c * horner(z, over) / horner(z, under)
    above = -ONE if y < -ONE else y
    return ONE if above > ONE else above


TANH_LIMIT = np.float32(9.02)
TANH_OVER = singles(
    1.3384331865040622e-08,
    2.0635858163586818e-05,
    0.003497459925711155,
    0.13382688164710999,
    1.0,
)
TANH_UNDER = singles(
    7.790267773088999e-07,
    0.0003288520674686879,
    0.025884369388222694,
    0.46716007590293884,
    1.0,
)


@inlined
def tanh_float32(x: Any) -> Any:
    """Hyperbolic tangent: an odd rational function, beyond whose limit it rounds to one."""
    return odd_below_one(x, TANH_LIMIT, TANH_OVER, TANH_UNDER)


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


ERF_LIMIT = np.float32(3.925)
ERF_OVER = singles(
    2.8355932499835035e-06,
    0.00039327534614130855,
    0.005186997354030609,
    0.0729023739695549,
    0.26292625069618225,
    1.560964584350586,
)
ERF_UNDER = singles(
    5.2647108532255515e-05,
    0.0016021972987800837,
    0.020664120092988014,
    0.1576528549194336,
    0.6941348314285278,
    1.3833688497543335,
)


@inlined
def erf_float32(x: Any) -> Any:
    """Error function: an odd rational function, beyond whose limit it rounds to one."""
    return odd_below_one(x, ERF_LIMIT, ERF_OVER, ERF_UNDER)


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


PI_HIGH = np.float32(math.pi)
PI_LOW = np.float32(math.pi - float(PI_HIGH))


@inlined
def _atan_below_one(s: Any) -> Any:
    z = s * s
    return fma(s * z, horner(z, ATAN), s)


@inlined
def atan_float32(x: Any) -> Any:
    """Arc tangent; above 1 a right angle less that of the reciprocal."""
    a = abs(x)
    far = a > ONE
    y = _atan_below_one(-ONE / a if far else a)
    y = HALF_PI_HIGH + (HALF_PI_LOW + y) if far else y
    return copysign(y, x)


@inlined
def atan2_float32(y: Any, x: Any) -> Any:
    """The angle of a point, by the arc tangent of a ratio of at most one."""
    a, b = abs(y), abs(x)
    steep = a > b
    top, bottom = (b, a) if steep else (a, b)
    ratio = top / bottom
    # Of two infinities, and of two zeros.
    ratio = ratio if top < INFINITY else ONE
    ratio = ratio if bottom > ZERO else ZERO
    angle = _atan_below_one(ratio)
    angle = HALF_PI_HIGH - (angle - HALF_PI_LOW) if steep else angle
    angle = PI_HIGH - (angle - PI_LOW) if copysign(ONE, x) < ZERO else angle
    angle = angle if a == a and b == b else NAN
    return copysign(angle, y)
