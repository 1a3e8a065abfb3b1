"""Sine and cosine of float32 in vectors, without a table in memory, for arguments of any size.

Up to 2^13 a multiple of pi/2 is taken off in three parts, of which the difference from the first is exact
with a fused multiplication (W. Cody and W. Waite, 1980). Beyond, where few numbers are (`cpu_seldom.py`):
x = m * 2^e with a whole m of 24 bits. Only the bits of 2^e * 2/pi modulo 4 matter; they are shifted out of a
constant in three parts of 29 bits, whose products with m are exact in float64: the argument is reduced as if
with infinite precision (M. Payne and R. Hanek, Radian reduction for trigonometric functions, 1983).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_bits import fma, horner, whole_significand
from irkit.runtime.intrinsics.cpu_functions import INFINITY, NAN, ONE, ZERO, inlined, singles
from irkit.runtime.intrinsics.cpu_seldom import seldom

_I32, _F64 = ir.IntType(32), ir.DoubleType()
# 64 zeros, and the first 224 bits of 2/pi behind the point, in words of 32.
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB
_WORDS = [_TWO_OVER_PI >> 32 * n & 0xFFFFFFFF for n in range(8, -1, -1)]
# Of a number with this biased exponent or a smaller one the sine is itself, and the cosine 1.
_SMALLEST = 127 - 13
_PART = 29


@intrinsic
def two_over_pi(typingctx: Any, x: Any) -> Any:
    """2^e * 2/pi modulo 4 in three parts of 29 bits, for a float32 x = m * 2^e with a whole m of 24 bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        printer = _Window(builder)
        parts = printer.parts(printer.start(arguments[0]))
        made = context.get_constant_undef(signature.return_type)
        for number, part in enumerate(parts):
            made = builder.insert_value(made, part, number)
        return made

    return types.UniTuple(types.float64, 3)(types.float32), codegen


class _Window:
    """Prints what takes 96 bits out of the words, from any bit on."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def start(self, x: Any) -> Any:
        """The bit of the words whose weight for `x` is 2."""
        builder = self.builder
        bits = builder.bitcast(x, _I32)
        field = builder.and_(builder.lshr(bits, _I32(23)), _I32(255))
        small = builder.icmp_unsigned("<", field, _I32(_SMALLEST))
        biased = builder.select(small, _I32(_SMALLEST), field)
        return builder.sub(biased, _I32(150 + 2 - 64))

    def parts(self, start: Any) -> list[Any]:
        """The first three times 29 bits from `start` on, as float64."""
        builder = self.builder
        words = [_I32(word) for word in _WORDS]
        for step in (4, 2, 1):
            moved = builder.icmp_unsigned("!=", builder.and_(start, _I32(32 * step)), _I32(0))
            kept = max(4 + step - 1, 4)
            words = [
                builder.select(moved, words[min(n + step, len(words) - 1)], words[n])
                for n in range(kept)
            ]
        kind = ir.FunctionType(_I32, [_I32] * 3)
        funnel = cgutils.get_or_insert_function(builder.module, kind, "llvm.fshl.i32")
        by = builder.and_(start, _I32(31))
        first, second, third = (
            builder.call(funnel, [words[n], words[n + 1], by]) for n in range(3)
        )
        whole = (
            builder.lshr(first, _I32(3)),
            self._joined(first, 7, 26, second, 6),
            self._joined(second, 63, 23, third, 9),
        )
        return [
            builder.fmul(builder.sitofp(word, _F64), _F64(2.0 ** (2 - _PART * (n + 1))))
            for n, word in enumerate(whole)
        ]

    def _joined(self, high: Any, mask: int, up: int, low: Any, down: int) -> Any:
        """The last bits of one word before the first of the next."""
        builder = self.builder
        kept = builder.shl(builder.and_(high, _I32(mask)), _I32(up))
        return builder.or_(kept, builder.lshr(low, _I32(down)))


HALF_PI = np.float64(math.pi / 2)
NEAR_ZERO = np.float32(2.0**-12)
SIN = singles(-0.0001958789088041238579, 0.008332748270629749485, -0.1666666466231437862)
COS = singles(0.00002454794208507157251, -0.001388830303589486604, 0.04166666465950220677)
MINUS_HALF = np.float32(-0.5)


@inlined
def reduced(x: Any) -> Any:
    """(r, quadrant) with |x| = r + quadrant * pi/2 modulo 2 pi and |r| <= pi/4."""
    m = whole_significand(x)
    high, middle, low = two_over_pi(x)
    first = m * high
    quarters = np.rint(first)
    second = (first - quarters) + m * middle
    more = np.rint(second)
    rest = (second - more) + m * low
    return np.float32(rest * HALF_PI), np.int32(quarters) + np.int32(more)


NEAR = np.float32(2.0**13)
TWO_OVER_PI = np.float32(2 / math.pi)
PART, PART_LOW, PART_LOWEST = singles(
    1.5707963705062866, -4.371138828673793e-8, -1.7151245100058819e-15
)


@inlined
def _reduced_near(x: Any) -> Any:
    """(r, its rest, quadrant) with x = r + rest + quadrant * pi/2, of |x| <= `NEAR`."""
    n = np.rint(x * TWO_OVER_PI)
    first, second = fma(-n, PART, x), n * PART_LOW
    r = first - second
    taken = r - first
    lost = (first - (r - taken)) - (second + taken)
    return r, lost - fma(n, PART_LOWEST, fma(n, PART_LOW, -second)), np.int32(n)


@inlined
def _sine_of(r: Any, rest: Any, quadrant: Any) -> Any:
    """The sine of r + rest + quadrant * pi/2."""
    z = r * r
    flat = fma(MINUS_HALF, z, ONE)
    sine = r + fma(r * z, horner(z, SIN), rest * flat)
    cosine = fma(z * z, horner(z, COS), fma(-r, rest, flat))
    y = cosine if quadrant & 1 else sine
    return -y if quadrant & 2 else y


def sin_far32(x: Any) -> Any:
    """The sine of what may be large; of infinities it is NaN."""
    r, quadrant = reduced(x)
    y = _sine_of(r, ZERO, quadrant)
    y = y if x > 0 else -y
    return y if abs(x) < INFINITY else NAN


def cos_far32(x: Any) -> Any:
    """The cosine of what may be large; of infinities it is NaN."""
    r, quadrant = reduced(x)
    y = _sine_of(r, ZERO, quadrant + 1)
    return y if abs(x) < INFINITY else NAN


_SIN_FAR, _COS_FAR = (seldom(f, types.float32) for f in (sin_far32, cos_far32))


@inlined
def sin_float32(x: Any) -> Any:
    """Sine; of infinities it is NaN."""
    r, rest, quadrant = _reduced_near(x)
    y = _sine_of(r, rest, quadrant)
    y = y if abs(x) > NEAR_ZERO else x
    return y if abs(x) <= NEAR else _SIN_FAR(x)


@inlined
def cos_float32(x: Any) -> Any:
    """Cosine; of infinities it is NaN."""
    r, rest, quadrant = _reduced_near(x)
    y = _sine_of(r, rest, quadrant + 1)
    return y if abs(x) <= NEAR else _COS_FAR(x)
