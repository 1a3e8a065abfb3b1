"""Division by a constant as two fused operations that give the very bits of a division, by proof.

Of x / y with y known, h = 1 / y rounded down and l = 1 / y - h rounded, x * h + x * l is rounded once but for
the error of x * l, some 2^-104 of the quotient (of float64). That can change the rounded quotient only where
x / y is as near to the middle of two floats: for few x, which a congruence names, and for each of them it is
seen. Most divisors pass; those that do not are divided by. (Brisebarre, Muller and Raina, "Accelerating
correctly rounded floating-point division when the divisor is known in advance", IEEE Transactions on
Computers 53(8), 2004, has the two operations, and another test of divisors.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Attribute


@dataclass(frozen=True)
class Format:
    """A binary format: bits of a significand, and by how many powers of two from 1 a divisor may be.

    `least` is what a quotient is, if not 0, where nothing of it was lost below the smallest float.
    """

    bits: int
    reach: int
    least: float


SINGLE = Format(24, 30, 2.0**-60)
DOUBLE = Format(53, 200, 2.0**-300)


@dataclass(frozen=True)
class Reciprocal:
    """1 / y as the sum of two floats of one sign, and the least magnitude of quotients that they give."""

    high: float
    low: float
    least: float


def reciprocal_of(divisor: float, element: Attribute) -> Reciprocal | None:
    """The reciprocal of a float32 or float64 by which every float is divided right; None where there is none,
    or a product with one float does it (powers of two)."""
    forms: dict[type[Attribute], Format] = {Float32Type: SINGLE, Float64Type: DOUBLE}
    form = forms.get(type(element))
    return None if form is None else _reciprocal(divisor, form)


@lru_cache(maxsize=4096)
def _reciprocal(divisor: float, form: Format) -> Reciprocal | None:
    if not math.isfinite(divisor) or divisor == 0:
        return None
    significand, exponent = math.frexp(abs(divisor))
    if significand == 0.5 or abs(exponent) > form.reach:
        return None
    exact = 1 / Fraction(abs(divisor))
    # Of one sign with the exact one, so that zeros keep theirs.
    high = _rounded(exact, form.bits, down=True)
    low = _rounded(exact - high, form.bits)
    divided = int(math.ldexp(significand, form.bits))
    if not all(_right(x, divided, exact, high, low, form.bits) for x in _near(divided, form.bits)):
        return None
    sign = math.copysign(1.0, divisor)
    return Reciprocal(sign * float(high), sign * float(low), form.least)


def _rounded(value: Fraction, bits: int, down: bool = False) -> Fraction:
    """To a float of so many bits, with no bounds to its exponent; to the nearest, or down."""
    if value == 0:
        return value
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    # Of a quotient of integers of those lengths one bit more may stand before the point.
    if value * Fraction(2) ** shift >= 2**bits:
        shift -= 1
    scaled = value * Fraction(2) ** shift
    whole = math.floor(scaled) if down else round(scaled)
    return whole / Fraction(2) ** shift


def _near(divisor: int, bits: int) -> Iterator[int]:
    """Significands x of which x / divisor may be as near to the middle of two floats as the error is large:
    |x * 2^k - middle * divisor| is an integer, and no more than 4 where x >= divisor, 8 where it is less."""
    twos = (divisor & -divisor).bit_length() - 1
    odd = divisor >> twos
    for k, most in ((bits, 4), (bits + 1, 8)):
        period = 1 << (k - twos)
        inverse = pow(odd, -1, period)
        for off in range(-most, most + 1):
            if off == 0 or off % (1 << twos):
                continue
            first = -(off >> twos) * inverse % period
            for middle in range(first, 1 << (bits + 1), period):
                x, rest = divmod(off + middle * divisor, 1 << k)
                if rest == 0 and x.bit_length() == bits:
                    yield x


def _right(x: int, divisor: int, exact: Fraction, high: Fraction, low: Fraction, bits: int) -> bool:
    """Whether the two operations give what the quotient rounds to."""
    scale = exact * divisor
    found = _rounded(x * high + _rounded(x * low, bits), bits)
    return found == _rounded(x * scale / divisor, bits)
