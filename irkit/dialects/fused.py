"""x * y + z rounded once, on arrays: NumPy has no such function.

Of float32 in float64, where products are exact; of float64 in pairs of them, after Boldo and Melquiond, "Emulation
of FMA and correctly rounded sums: proved algorithms using rounding to odd" (IEEE Trans. Computers, 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from irkit.weights import Array

_SPLIT = 2.0**27 + 1
_FACTORS, _TERMS = 2.0**400, 2.0**900
"""Where no step of the pairs overflows or vanishes: magnitudes up to these, and down to one over them."""


def multiply_add(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once: arrays of one float type, float32 or float64, that broadcast."""
    shape = np.broadcast_shapes(np.shape(x), np.shape(y), np.shape(z))
    x, y, z = (np.broadcast_to(v, shape).reshape(-1) for v in (x, y, z))
    with np.errstate(all="ignore"):
        return _rows(x, y, z).reshape(shape)


def _rows(x: Array, y: Array, z: Array) -> Array:
    # A product that would overflow is none: what is infinite is z.
    plain = np.where(np.isfinite(x) & np.isfinite(y) & ~np.isfinite(z), z, x * y + z)
    if x.dtype == np.float32:
        wide = x.astype(np.float64) * y.astype(np.float64)
        total = _to_odd(*_two_sum(wide, z.astype(np.float64)))
        return np.where(np.isfinite(wide) & np.isfinite(z), total.astype(np.float32), plain)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    calm = finite & _between(x, _FACTORS) & _between(y, _FACTORS) & _between(z, _TERMS)
    found = np.where(calm, _in_pairs(*(np.where(calm, v, 0.0) for v in (x, y, z))), plain)
    for place in np.flatnonzero(finite & ~calm).tolist():
        found[place] = _exactly(x[place], y[place], z[place], plain[place])
    return found


def _between(x: Array, limit: float) -> Array:
    size = np.abs(x)
    return (size == 0) | ((size <= limit) & (size >= 1 / limit))


def _in_pairs(x: Array, y: Array, z: Array) -> Array:
    high, low = _product(x, y)
    top, rest = _two_sum(z, low)
    total, left = _two_sum(high, top)
    exact = _to_odd(*_two_sum(rest, left))
    # Of a sum that is 0 the sign is that of the plain one.
    return np.where(exact == 0, np.where(total == 0, x * y + z, total), total + exact)


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """A product and what its rounding left over (Dekker)."""
    (a, b), (c, d) = _halves(x), _halves(y)
    product = x * y
    return product, b * d - (((product - a * c) - b * c) - a * d)


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """A sum and what its rounding left over (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _to_odd(total: Array, left: Array) -> Array:
    """The sum, of the two numbers next to the exact one that whose last bit is 1, where it is neither."""
    bits = np.ascontiguousarray(total).view(np.int64)
    away = np.where((left > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (left != 0) & (bits & 1 == 0)
    return (bits + np.where(inexact, away, 0)).view(np.float64)


def _exactly(x: Any, y: Any, z: Any, plain: Any) -> float:
    total = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if total == 0:
        return float(plain)
    try:
        return float(total)
    except OverflowError:
        return float(np.copysign(np.inf, float(np.sign(total.numerator))))
