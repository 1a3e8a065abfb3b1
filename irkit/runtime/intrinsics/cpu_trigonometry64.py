"""Sine, cosine and their inverses of float64, in vectors, without a table in memory.

Up to 2^30 a multiple of pi/2 is taken off in three parts (W. Cody and W. Waite, Software manual for the
elementary functions, 1980); with a fused multiplication the difference from the first is exact. Beyond, where
few numbers are (`cpu_seldom.py`): x = m * 2^e with a whole m of 53 bits. Only the bits of 2^e * 2/pi modulo 4
matter; they are shifted out of a constant in three parts of 52 bits, whose products with m are taken exactly
(M. Payne and R. Hanek, Radian reduction for trigonometric functions, 1983). What is left over is 2^-101 at
most: of the few numbers that lie within 2^-48 of a multiple of pi/2 the sine, or the cosine, has fewer right
digits than its unit says.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_bits import copysign, fma, horner
from irkit.runtime.intrinsics.cpu_functions import inlined
from irkit.runtime.intrinsics.cpu_functions64 import atan_float64
from irkit.runtime.intrinsics.cpu_seldom import seldom

_I64, _F64 = ir.IntType(64), ir.DoubleType()
# Of a number with this biased exponent or a smaller one the sine is itself, and the cosine 1.
_SMALLEST, _LARGEST = 1023 - 28, 2046
_FRACTION, _BIAS = 52, 1023
_PART = 52
# Zeros before the first bit of 2/pi, as a small number has them before it.
_ZEROS, _WORDS = 128, 21


@cache
def two_over_pi_words() -> tuple[int, ...]:
    """`_ZEROS` zeros and the bits of 2/pi behind the point, in words of 64: pi by Machin's formula."""
    bits = 64 * _WORDS - _ZEROS
    one = 1 << (bits + 64)

    def arc_cotangent(n: int) -> int:
        power = total = one // n
        term, square = 3, n * n
        while power:
            power //= -square
            total += power // term
            term += 2
        return total

    pi = 4 * (4 * arc_cotangent(5) - arc_cotangent(239))
    found = (2 * one << bits) // pi
    return tuple(found >> 64 * n & (1 << 64) - 1 for n in range(_WORDS - 1, -1, -1))


@intrinsic
def two_over_pi(typingctx: Any, x: Any) -> Any:
    """2^e * 2/pi modulo 4 in three parts of 52 bits, for a float64 x = m * 2^e with a whole m of 53 bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.get_constant_undef(signature.return_type)
        for number, part in enumerate(_parts(builder, arguments[0])):
            made = builder.insert_value(made, part, number)
        return made

    return types.UniTuple(types.float64, 3)(types.float64), codegen


def _parts(builder: Any, x: Any) -> list[Any]:
    """The three parts, out of words that are chosen by the exponent's bits."""
    field = builder.and_(builder.lshr(builder.bitcast(x, _I64), _I64(_FRACTION)), _I64(2047))
    # Infinities and NaN have results of their own.
    for limit, sign in ((_SMALLEST, "<"), (_LARGEST, ">")):
        outside = builder.icmp_unsigned(sign, field, _I64(limit))
        field = builder.select(outside, _I64(limit), field)
    # The bit whose weight is 2: that of 2^(1 - e) behind the point.
    start = builder.sub(field, _I64(_BIAS + _FRACTION + 2 - _ZEROS))
    words = [_I64(word) for word in two_over_pi_words()]
    for step in (16, 8, 4, 2, 1):
        moved = builder.icmp_unsigned("!=", builder.and_(start, _I64(64 * step)), _I64(0))
        # A word that is too far on is looked at by no number.
        words = [
            builder.select(moved, words[n + step], words[n]) if n + step < len(words) else words[n]
            for n in range(4 + step - 1)
        ]
    kind = ir.FunctionType(_I64, [_I64] * 3)
    funnel = cgutils.get_or_insert_function(builder.module, kind, "llvm.fshl.i64")
    by = builder.and_(start, _I64(63))
    first, second, third = (builder.call(funnel, [words[n], words[n + 1], by]) for n in range(3))
    whole = (
        builder.lshr(first, _I64(12)),
        _joined(builder, (first, 12, 40), (second, 24)),
        _joined(builder, (second, 24, 28), (third, 36)),
    )
    return [_as_float(builder, bits, 2 - _PART * (n + 1)) for n, bits in enumerate(whole)]


def _joined(builder: Any, high: tuple[Any, int, int], low: tuple[Any, int]) -> Any:
    """The last bits of one word, moved up, before the first of the next."""
    word, count, up = high
    kept = builder.shl(builder.and_(word, _I64((1 << count) - 1)), _I64(up))
    return builder.or_(kept, builder.lshr(low[0], _I64(low[1])))


def _as_float(builder: Any, bits: Any, power: int) -> Any:
    """A whole number of 52 bits times a power of two, without a conversion of 64 bits, which few have."""
    lifted = builder.or_(bits, _I64((_BIAS + _FRACTION) << _FRACTION))
    value = builder.fsub(builder.bitcast(lifted, _F64), _F64(2.0**_FRACTION))
    return builder.fmul(value, _F64(2.0**power))


@intrinsic
def whole_significand64(typingctx: Any, x: Any) -> Any:
    """The significand of a normal float64 as a whole number of 53 bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _I64)
        fraction = builder.and_(bits, _I64((1 << _FRACTION) - 1))
        # The bits of a number from 2^52 on are its own; the first is not written.
        return builder.bitcast(builder.or_(fraction, _I64((_BIAS + _FRACTION) << _FRACTION)), _F64)

    return types.float64(types.float64), codegen


PI, HALF_PI, QUARTER = math.pi, math.pi / 2, 0.25
HALF_PI_LOW, PI_LOW = 6.123233995736766036e-17, 1.224646799147353207e-16
NEAR_ZERO = 2.0**-27
SIN = (
    1.591812929486660867e-10,
    -2.505113184500362442e-8,
    2.755731610255244012e-6,
    -0.0001984126983675857432,
    0.008333333333330948486,
    -0.1666666666666666462,
)
COS = (
    -1.138263242552171801e-11,
    2.087614626840319789e-9,
    -2.755731727172979288e-7,
    0.00002480158729876568793,
    -0.001388888888888739724,
    0.04166666666666666539,
)


@inlined
def _sum(a: Any, b: Any) -> Any:
    """(a + b, what rounding took from it)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@inlined
def reduced64(x: Any) -> Any:
    """(r, its rest, quadrant) with |x| = r + rest + quadrant * pi/2 modulo 2 pi and |r| <= pi/4."""
    m = whole_significand64(x)
    high, middle, low = two_over_pi(x)
    first = m * high
    # A whole number of turns is of no matter; what is left of `first` is exact.
    quarters = first - 4.0 * np.rint(QUARTER * first)
    a, rest_a = _sum(quarters, fma(m, high, -first))
    whole = np.rint(a)
    second = m * middle
    b, rest_b = _sum(a - whole, second)
    more = np.rint(b)
    b = b - more
    rest = (rest_a + rest_b) + (fma(m, middle, -second) + m * low)
    top, rest = _sum(b, rest)
    r = top * HALF_PI
    low_r = fma(top, HALF_PI, -r) + fma(top, HALF_PI_LOW, rest * HALF_PI)
    return r, low_r, whole + more


@inlined
def _sine_of64(r: Any, low: Any, quadrant: Any) -> Any:
    """The sine of r + low + quadrant * pi/2; the quadrant is a whole float between -8 and 8."""
    z = r * r
    sine = r + fma(r * z, horner(z, SIN), low * fma(-0.5, z, 1.0))
    half = 0.5 * z
    top = 1.0 - half
    cosine = top + (((1.0 - top) - half) + fma(z * z, horner(z, COS), -r * low))
    # The quadrant modulo 2 and modulo 4, without a conversion of 64 bits, which few processors have.
    odd = abs(quadrant - 2.0 * np.rint(0.5 * quadrant)) == 1.0
    turned = quadrant - 4.0 * np.floor(QUARTER * quadrant)
    y = cosine if odd else sine
    return -y if turned >= 2.0 else y


NEAR = 2.0**30
TWO_OVER_PI, HALF_PI_LOWEST = 2 / math.pi, -1.4973849048591833e-33


@inlined
def _reduced_near(x: Any) -> Any:
    """As `reduced64`, of x itself, of |x| <= `NEAR`; the quadrant is any whole number."""
    n = np.rint(x * TWO_OVER_PI)
    second = n * HALF_PI_LOW
    r, rest = _sum(fma(-n, HALF_PI, x), -second)
    return r, rest - fma(n, HALF_PI_LOWEST, fma(n, HALF_PI_LOW, -second)), n


def sin_far(x: Any) -> Any:
    """The sine of what may be large; of infinities it is NaN."""
    r, low, quadrant = reduced64(x)
    y = _sine_of64(r, low, quadrant)
    y = y if x > 0.0 else -y
    return y if abs(x) < math.inf else math.nan


def cos_far(x: Any) -> Any:
    """The cosine of what may be large; of infinities it is NaN."""
    r, low, quadrant = reduced64(x)
    y = _sine_of64(r, low, quadrant + 1.0)
    return y if abs(x) < math.inf else math.nan


_SIN_FAR, _COS_FAR = seldom(sin_far), seldom(cos_far)


@inlined
def sin_float64(x: Any) -> Any:
    """Sine; of infinities it is NaN."""
    r, low, quadrant = _reduced_near(x)
    y = _sine_of64(r, low, quadrant)
    y = y if abs(x) > NEAR_ZERO else x
    return y if abs(x) <= NEAR else _SIN_FAR(x)


@inlined
def cos_float64(x: Any) -> Any:
    """Cosine; of infinities it is NaN."""
    r, low, quadrant = _reduced_near(x)
    y = _sine_of64(r, low, quadrant + 1.0)
    return y if abs(x) <= NEAR else _COS_FAR(x)


ASIN = (
    0.02875785136742156471,
    -0.01485188707124720322,
    0.01740087944269402244,
    0.0054575067186403583,
    0.01032281435018577929,
    0.0114791774151849059,
    0.0139712129735529333,
    0.01735239272086997294,
    0.02237217294214988787,
    0.03038194413853124729,
    0.04464285714635542978,
    0.07499999999998432933,
    0.1666666666666666783,
)


@inlined
def _root_and_rest(z: Any) -> Any:
    """(the square root of z, what it lacks)."""
    root = np.sqrt(z)
    rest = fma(-root, root, z) * (0.5 / root)
    return root, (rest if z > 0.0 else 0.0)


@inlined
def _less(a: Any, b: Any, small: Any) -> Any:
    """a - b + small of |a| >= |b|, rounded about once."""
    d = a - b
    return d + (((a - d) - b) + small)


@inlined
def asin_float64(x: Any) -> Any:
    """Arc sine: a polynomial up to one half, else by that of half an angle."""
    a = abs(x)
    far = a > 0.5
    z = fma(-0.5, a, 0.5) if far else a * a
    root, rest = _root_and_rest(z)
    s = root if far else a
    p = s * z * horner(z, ASIN)
    beyond = _less(HALF_PI, 2.0 * s, HALF_PI_LOW - 2.0 * (rest + p))
    y = beyond if far else a + p
    y = y if a <= 1.0 else math.nan
    return copysign(y, x)


@inlined
def acos_float64(x: Any) -> Any:
    """Arc cosine, by arc sines of what is at most one half."""
    a = abs(x)
    far = a > 0.5
    z = fma(-0.5, a, 0.5) if far else a * a
    root, rest = _root_and_rest(z)
    s = root if far else a
    p = s * z * horner(z, ASIN)
    near = _less(HALF_PI, x, HALF_PI_LOW - copysign(p, x))
    more = 2.0 * (rest + p)
    beyond = 2.0 * s + more if x > 0.0 else _less(PI, 2.0 * s, PI_LOW - more)
    y = beyond if far else near
    return y if a <= 1.0 else math.nan


@inlined
def atan2_float64(y: Any, x: Any) -> Any:
    """The angle of a point, by the arc tangent of a ratio of at most one."""
    a, b = abs(y), abs(x)
    steep = a > b
    top, bottom = (b, a) if steep else (a, b)
    ratio = top / bottom
    # Of two infinities, and of two zeros.
    ratio = ratio if top < math.inf else 1.0
    ratio = ratio if bottom > 0.0 else 0.0
    angle = atan_float64(ratio)
    angle = HALF_PI - (angle - HALF_PI_LOW) if steep else angle
    angle = PI - (angle - PI_LOW) if copysign(1.0, x) < 0.0 else angle
    angle = angle if a == a and b == b else math.nan
    return copysign(angle, y)
