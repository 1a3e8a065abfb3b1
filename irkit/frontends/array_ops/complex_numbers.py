"""Functions of complex numbers, which are pairs of real and imaginary parts of one float type.

Formulas and their order are NumPy's: sums, differences and comparisons have its bits. Quotients are
Smith's (Algorithm 116, CACM 1962), magnitudes do not overflow before their time, and logarithms keep their
digits beside 1 (Kahan, "Branch cuts for complex elementary functions", 1987). Functions of C's library are
within a few units in the last place of the larger part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops
from irkit.frontends.array_ops import elementwise

Pair = tuple[Any, Any]
"""A real and an imaginary part."""
Rule = Callable[..., Any]
"""Ops and pairs to a pair, or to a real value."""

LARGEST_POWER = 100
"""Whole powers below it are products, as NumPy's are."""


def _part_by_part(op: type[graph.GraphOp]) -> Rule:
    def parts(o: Ops[Any], *z: Pair) -> Pair:
        return o(op, *(a for a, _ in z)), o(op, *(b for _, b in z))

    return parts


def _same(o: Ops[Any], z: Pair) -> Pair:
    return z


def conjugate(o: Ops[Any], z: Pair) -> Pair:
    """a - bi"""
    return z[0], o(graph.NegOp, z[1])


def multiply(o: Ops[Any], x: Pair, y: Pair, fused: bool = True) -> Pair:
    """(a + bi)(c + di). `fused`: as NumPy's loops over arrays have it on processors with a fused
    multiply-add; of NumPy's numbers, and in powers, each step is rounded."""
    (a, b), (c, d) = x, y
    if not fused:
        return o.sub(o.mul(a, c), o.mul(b, d)), o.add(o.mul(a, d), o.mul(b, c))
    real = o(graph.FmaOp, a, c, o(graph.NegOp, o.mul(b, d)))
    return real, o(graph.FmaOp, a, d, o.mul(b, c))


def square(o: Ops[Any], z: Pair, fused: bool = True) -> Pair:
    """z z"""
    return multiply(o, z, z, fused)


def divide(o: Ops[Any], x: Pair, y: Pair) -> Pair:
    """Smith's quotient: of what is divided by 0 each part is infinite or NaN."""
    (a, b), (c, d) = x, y
    size, across = o(graph.AbsOp, c), o(graph.AbsOp, d)
    wide = o.compare(size, across, "ge")
    larger, smaller = o.where(wide, c, d), o.where(wide, d, c)
    ratio = o.div(smaller, larger)
    scale = o.div(o.like(1, c), o.add(larger, o.mul(smaller, ratio)))
    by_first = o.add(a, o.mul(b, ratio)), o.sub(b, o.mul(a, ratio))
    by_second = o.add(o.mul(a, ratio), b), o.sub(o.mul(b, ratio), a)
    real, imaginary = (
        o.mul(o.where(wide, p, q), scale) for p, q in zip(by_first, by_second, strict=True)
    )
    nothing = o(graph.AndOp, o.equals(size, 0), o.equals(across, 0))
    return o.where(nothing, o.div(a, size), real), o.where(nothing, o.div(b, size), imaginary)


def reciprocal(o: Ops[Any], z: Pair) -> Pair:
    """1 / z"""
    a, b = z
    wide = o.compare(o(graph.AbsOp, b), o(graph.AbsOp, a), "le")
    ratio = o.div(o.where(wide, b, a), o.where(wide, a, b))
    total = o.add(o.mul(o.where(wide, b, a), ratio), o.where(wide, a, b))
    one, minus = o.like(1, a), o.like(-1, a)
    return (
        o.div(o.where(wide, one, ratio), total),
        o.div(o.where(wide, o(graph.NegOp, ratio), minus), total),
    )


def absolute(o: Ops[Any], z: Pair) -> Any:
    """The larger part times sqrt(1 + ratio^2): infinite where a part is."""
    larger, smaller = _by_size(o, z)
    size = o(graph.AbsOp, larger)
    infinite = o(graph.OrOp, *(o.equals(o(graph.AbsOp, p), math.inf) for p in z))
    plain = o(graph.OrOp, infinite, o.equals(size, 0))
    # By 1 where nothing is divided, so that a derivative is no quotient by 0 either.
    quotient = o.div(smaller, o.where(plain, o.like(1, size), larger))
    ratio = o.where(plain, o.like(0, size), quotient)
    root = o(graph.SqrtOp, o(graph.FmaOp, ratio, ratio, o.like(1, size)))
    return o.where(infinite, o.like(math.inf, size), o.mul(root, size))


def _by_size(o: Ops[Any], z: Pair) -> Pair:
    """The part of the larger magnitude and the other, with their signs: a magnitude has no second derivative
    at 0. NaN, where there is one, is the first."""
    a, b = z
    first = o(
        graph.OrOp, o.compare(o(graph.AbsOp, a), o(graph.AbsOp, b), "ge"), o(graph.IsNanOp, a)
    )
    return o.where(first, a, b), o.where(first, b, a)


def exp(o: Ops[Any], z: Pair) -> Pair:
    """e^a (cos b + i sin b), in two steps where e^a alone is infinite; real of real numbers."""
    a, b = z
    half = o(graph.ExpOp, o.mul(a, o.like(0.5, a)))
    most = math.log(float(np.finfo(o.dtype(a)).max)) - 1
    large = o.above(a, most)
    size = o(graph.ExpOp, a)

    def scaled(turn: Any) -> Any:
        return o.where(large, o.mul(half, o.mul(half, turn)), o.mul(size, turn))

    along, across = scaled(o(graph.CosOp, b)), scaled(o(graph.SinOp, b))
    # Elsewhere the products are right, and differentiable, also of real numbers.
    beyond = o(graph.NotOp, o.compare(a, o.like(most, a), "le"))
    real = o(graph.AndOp, o.equals(b, 0), beyond)
    endless = o(graph.NotOp, elementwise.is_finite(o, b))
    vanished = o(graph.AndOp, o.equals(a, -math.inf), endless)
    grown = o(graph.AndOp, o.equals(a, math.inf), endless)
    along = o.where(vanished, o.like(0, a), o.where(o(graph.OrOp, real, grown), size, along))
    return along, o.where(vanished, o.like(0, a), o.where(real, b, across))


def log(o: Ops[Any], z: Pair) -> Pair:
    """log |z| and the angle."""
    signed, smaller = _by_size(o, z)
    larger = a = o(graph.AbsOp, signed)
    beside = o.mul(o.sub(larger, o.like(1, a)), o.add(larger, o.like(1, a)))
    near = o.mul(o(graph.Log1pOp, o.add(beside, o.mul(smaller, smaller))), o.like(0.5, a))
    size = absolute(o, z)
    is_near = o(graph.AndOp, o.above(size, 0.5), o.below(size, 2))
    # Where |z| itself would overflow, half of it does not.
    huge = o.above(larger, float(np.finfo(o.dtype(a)).max) / 4)
    quarter = absolute(o, tuple(o.mul(p, o.like(0.25, a)) for p in z))
    plain = o.where(
        huge, o.add(o(graph.LogOp, quarter), o.like(math.log(4), a)), o(graph.LogOp, size)
    )
    return o.where(is_near, near, plain), o(graph.Atan2Op, z[1], z[0])


def sqrt(o: Ops[Any], z: Pair) -> Pair:
    """The root with a real part that is not negative; its imaginary part has the sign of z's."""
    limits = np.finfo(o.dtype(z[0]))
    large = o.above(o(graph.MaxOp, *(o(graph.AbsOp, p) for p in z)), float(limits.max) / 4)
    small = o.below(o(graph.MaxOp, *(o(graph.AbsOp, p) for p in z)), float(limits.tiny) * 2**60)

    def chosen(at_large: float, at_small: float) -> Any:
        rest = o.where(small, o.like(at_small, z[0]), o.like(1, z[0]))
        return o.where(large, o.like(at_large, z[0]), rest)

    by, back = chosen(2.0**-4, 2.0**60), chosen(2.0**2, 2.0**-30)
    a, b = (o.mul(p, by) for p in z)
    # Magnitudes by signs: a root has derivatives where one part is 0, and a magnitude has none there.
    right = o(graph.NotOp, o.below(a, 0))
    along = o.where(right, a, o(graph.NegOp, a))
    root = o(graph.SqrtOp, o.mul(o.add(along, absolute(o, (a, b))), o.like(0.5, a)))
    side = o(graph.CopysignOp, o.like(1, b), b)
    other = o.div(o.mul(b, side), o.mul(root, o.like(2, a)))
    other = o.where(o.equals(root, 0), o.like(0, a), other)
    real, size = o.where(right, root, other), o.where(right, other, root)
    imaginary = o.mul(o.mul(size, back), side)
    infinite = o.equals(o(graph.AbsOp, z[1]), math.inf)
    return o.where(infinite, o.like(math.inf, a), o.mul(real, back)), o.where(
        infinite, z[1], imaginary
    )


def sinh(o: Ops[Any], z: Pair) -> Pair:
    """sinh a cos b + i cosh a sin b"""
    a, b = z
    along = o.mul(o(graph.SinhOp, a), o(graph.CosOp, b))
    along = o.where(_all_at_once(o, z), a, _or_zero(o, a, along, a))
    return along, _or_zero(o, b, o.mul(o(graph.CoshOp, a), o(graph.SinOp, b)), b)


def cosh(o: Ops[Any], z: Pair) -> Pair:
    """cosh a cos b + i sinh a sin b"""
    a, b = z
    size, sine = o(graph.CoshOp, a), o(graph.SinOp, b)
    along = o.where(_all_at_once(o, z), size, o.mul(size, o(graph.CosOp, b)))
    short = o.where(o.equals(a, 0), a, o(graph.CopysignOp, o.like(1, a), a))
    rest = o.where(o.equals(b, 0), b, o(graph.CopysignOp, o.like(1, b), b))
    nothing, across = o.mul(short, rest), o.mul(o(graph.SinhOp, a), sine)
    return along, _or_zero(o, b, _or_zero(o, a, across, nothing), nothing)


def _or_zero(o: Ops[Any], part: Any, product: Any, zero: Any) -> Any:
    """A product; `zero` where a part is 0 and the other factor infinite or NaN. Elsewhere it stays, with its
    derivatives."""
    nothing = o(graph.AndOp, o.equals(part, 0), o(graph.IsNanOp, product))
    return o.where(nothing, zero, product)


def _all_at_once(o: Ops[Any], z: Pair) -> Any:
    """An infinite real part beside an imaginary one that has no sine."""
    infinite = o.equals(o(graph.AbsOp, z[0]), math.inf)
    return o(graph.AndOp, infinite, o(graph.NotOp, elementwise.is_finite(o, z[1])))


def sin(o: Ops[Any], z: Pair) -> Pair:
    """sinh(iz) / i"""
    real, imaginary = sinh(o, (o(graph.NegOp, z[1]), z[0]))
    return imaginary, o(graph.NegOp, real)


def cos(o: Ops[Any], z: Pair) -> Pair:
    """cosh(iz)"""
    return cosh(o, (o(graph.NegOp, z[1]), z[0]))


def whole_power(o: Ops[Any], z: Pair, exponent: int) -> Pair:
    """z to a whole power of less than LARGEST_POWER, by NumPy's products; 1 / z^n of negative ones."""
    one = o.like(1, z[0]), o.like(0, z[0])
    if exponent == 0:
        return one
    left, power, total = abs(exponent), z, one
    if 1 <= exponent <= 3:
        for _ in range(exponent - 1):
            power = multiply(o, z, power, fused=False)
        return power
    while True:
        total = multiply(o, total, power, fused=False) if left & 1 else total
        left >>= 1
        if not left:
            return divide(o, one, total) if exponent < 0 else total
        power = multiply(o, power, power, fused=False)


def _comparison(predicate: str) -> Rule:
    """By real parts, then by imaginary ones; false beside NaN."""

    def compared(o: Ops[Any], x: Pair, y: Pair) -> Any:
        numbers = o(graph.AndOp, *(o.compare(p, p, "eq") for p in (x[1], y[1])))
        first = o(graph.AndOp, o.compare(x[0], y[0], predicate[0] + "t"), numbers)
        second = o(graph.AndOp, o.compare(x[0], y[0], "eq"), o.compare(x[1], y[1], predicate))
        return o(graph.OrOp, first, second)

    return compared


def _of_parts(join: type[graph.GraphOp], test: Rule) -> Rule:
    """What is true of both parts (AndOp), or of one (OrOp)."""

    def joined(o: Ops[Any], *z: Pair) -> Any:
        return o(join, *(test(o, *parts) for parts in zip(*z, strict=True)))

    return joined


def _logical(op: type[graph.GraphOp]) -> Rule:
    def ufunc(o: Ops[Any], *z: Pair) -> Any:
        return o(op, *(truth(o, p) for p in z))

    return ufunc


def truth(o: Ops[Any], z: Pair) -> Any:
    """Whether it is not 0; NaN is true."""
    return o(graph.OrOp, *(o.truth(p) for p in z))


UFUNCS: Mapping[str, Rule] = {
    **{name: _part_by_part(op) for name, op in (
        ("add", graph.AddOp), ("subtract", graph.SubOp), ("negative", graph.NegOp),
        ("rint", graph.RoundOp),
    )},
    **{name: _comparison(short) for name, short in (
        ("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"),
    )},
    **{name: _logical(op) for name, op in (
        ("logical_and", graph.AndOp), ("logical_or", graph.OrOp), ("logical_xor", graph.XorOp),
        ("logical_not", graph.NotOp),
    )},
    "absolute": absolute,
    "conjugate": conjugate,
    "cos": cos,
    "cosh": cosh,
    "divide": divide,
    "equal": _of_parts(graph.AndOp, elementwise.UFUNCS["equal"]),
    "exp": exp,
    "isfinite": _of_parts(graph.AndOp, elementwise.is_finite),
    "isinf": _of_parts(graph.OrOp, elementwise.is_inf),
    "isnan": _of_parts(graph.OrOp, elementwise.is_nan),
    "log": log,
    "multiply": multiply,
    "not_equal": _of_parts(graph.OrOp, elementwise.UFUNCS["not_equal"]),
    "positive": _same,
    "reciprocal": reciprocal,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "square": square,
}  # fmt: skip
"""NumPy's ufuncs, by `__name__`. `power` is `whole_power`, of exponents that are known."""
