"""NumPy's ufuncs, each as a function of an `Ops` and its operands, in the types of the loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops
from irkit.frontends.array_ops.division import divmod_of, floor_divide, fmod, remainder

Ufunc = Callable[..., Any]
"""A function of an `Ops` and operands that broadcast; `divmod`, `frexp` and `modf` have two results."""


def _op(op: type[graph.GraphOp]) -> Ufunc:
    def ufunc(o: Ops[Any], *v: Any) -> Any:
        return o(op, *v)

    return ufunc


def _same(o: Ops[Any], x: Any) -> Any:
    return x


def _comparison(predicate: str) -> Ufunc:
    def ufunc(o: Ops[Any], x: Any, y: Any) -> Any:
        if o.dtype(x) == o.dtype(y):
            return o.compare(x, y, predicate)
        # NumPy compares int64 with uint64 as whole numbers: one below 0 is less than all of the others.
        if o.dtype(x).kind == "u":
            return _below_zero(o, y, x, MIRRORED[predicate])
        return _below_zero(o, x, y, predicate)

    return ufunc


MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _below_zero(o: Ops[Any], x: Any, y: Any, predicate: str) -> Any:
    """A comparison of signed `x` with unsigned `y`."""
    negative = o.compare(x, o.like(0, x), "lt")
    found = o.compare(o.cast(x, o.dtype(y)), y, predicate)
    if predicate in ("lt", "le", "ne"):
        return o(graph.OrOp, negative, found)
    return o(graph.AndOp, o(graph.NotOp, negative), found)


def _logical(op: type[graph.GraphOp]) -> Ufunc:
    def ufunc(o: Ops[Any], *v: Any) -> Any:
        return o(op, *(o.truth(x) for x in v))

    return ufunc


def _rounding(op: type[graph.GraphOp]) -> Ufunc:
    """Of integers and booleans, themselves."""

    def ufunc(o: Ops[Any], x: Any) -> Any:
        return o(op, x) if o.is_float(x) else x

    return ufunc


def absolute(o: Ops[Any], x: Any) -> Any:
    """The magnitude; a boolean is its own."""
    return x if o.dtype(x) == np.bool_ else o(graph.AbsOp, x)


def trunc(o: Ops[Any], x: Any) -> Any:
    """Towards zero, whose sign stays."""
    if not o.is_float(x):
        return x
    return o.where(o.below(x, 0), o(graph.CeilOp, x), o(graph.FloorOp, x))


def sign(o: Ops[Any], x: Any) -> Any:
    """-1, 0 (never -0.0) or 1; NaN of NaN."""
    one, zero = o.like(1, x), o.like(0, x)
    positive = o.where(o.compare(x, zero, "gt"), one, zero)
    if o.is_float(x):
        positive = o.where(o(graph.IsNanOp, x), x, positive)
    if o.dtype(x).kind == "u":
        return positive
    return o.where(o.compare(x, zero, "lt"), o.like(-1, x), positive)


def square(o: Ops[Any], x: Any) -> Any:
    """x * x"""
    return o.mul(x, x)


def reciprocal(o: Ops[Any], x: Any) -> Any:
    """1 / x; of integers truncated, 0 of 0."""
    return o.div(o.like(1, x), x)


def _scaled(factor: Callable[[Any], Any]) -> Ufunc:
    """Times a number that is computed in x's own type."""

    def ufunc(o: Ops[Any], x: Any) -> Any:
        dtype = o.dtype(x)
        return o.mul(x, o.constant(np.asarray(factor(dtype.type), dtype)))

    return ufunc


def _degree(kind: Any) -> Any:
    return kind(180) / kind(math.pi)


def _radian(kind: Any) -> Any:
    return kind(math.pi) / kind(180)


def is_finite(o: Ops[Any], x: Any) -> Any:
    """Neither infinite nor NaN."""
    if not o.is_float(x):
        return o.compare(x, x, "eq")
    return o.below(o(graph.AbsOp, x), math.inf)


def is_inf(o: Ops[Any], x: Any) -> Any:
    """Infinite, of either sign."""
    if not o.is_float(x):
        return o.compare(x, x, "ne")
    return o.equals(o(graph.AbsOp, x), math.inf)


def is_nan(o: Ops[Any], x: Any) -> Any:
    """Not a number."""
    return o(graph.IsNanOp, x) if o.is_float(x) else o.compare(x, x, "ne")


def signbit(o: Ops[Any], x: Any) -> Any:
    """Negative, -0.0 too."""
    return o.below(o(graph.CopysignOp, o.like(1, x), x) if o.is_float(x) else x, 0)


def _extremum(op: type[graph.GraphOp]) -> Ufunc:
    """The larger or the smaller. Of zeros of both signs NumPy takes the second, in half precision the
    first."""

    def extremum(o: Ops[Any], x: Any, y: Any) -> Any:
        return o(op, y, x) if o.dtype(x) == np.float16 else o(op, x, y)

    return extremum


def _numbers(predicate: str) -> Ufunc:
    """fmax and fmin: of a number and a NaN the number."""

    def extremum(o: Ops[Any], x: Any, y: Any) -> Any:
        first = o.compare(x, y, predicate)
        if o.is_float(x):
            first = o(graph.OrOp, first, o(graph.IsNanOp, y))
        return o.where(first, x, y)

    return extremum


def hypot(o: Ops[Any], x: Any, y: Any) -> Any:
    """sqrt(x^2 + y^2) that neither overflows nor vanishes before its time; infinite where one is."""
    dtype = o.dtype(x)
    if dtype != np.float64:
        wide = hypot(o, o.cast(x, np.float64), o.cast(y, np.float64))
        return o.cast(wide, dtype)
    a, b = o(graph.AbsOp, x), o(graph.AbsOp, y)
    larger = o(graph.MaxOp, a, b)
    small, large = o.below(larger, 2.0**-450), o.above(larger, 2.0**500)

    def chosen(at_small: float, at_large: float) -> Any:
        rest = o.where(large, o.like(at_large, x), o.like(1.0, x))
        return o.where(small, o.like(at_small, x), rest)

    scale, back = chosen(2.0**600, 2.0**-600), chosen(2.0**-600, 2.0**600)
    # Of x itself: |x| has no second derivative at 0, where the square has one.
    total = o.add(square(o, o.mul(x, scale)), square(o, o.mul(y, scale)))
    length = o.mul(o(graph.SqrtOp, total), back)
    infinite = o(graph.OrOp, o.equals(a, math.inf), o.equals(b, math.inf))
    return o.where(infinite, o.like(math.inf, x), length)


def heaviside(o: Ops[Any], x: Any, at_zero: Any) -> Any:
    """0 below zero, 1 above, the second operand at zero; NaN of NaN."""
    step = o.where(o.below(x, 0), o.like(0, x), o.where(o.above(x, 0), o.like(1, x), at_zero))
    return o.where(o(graph.IsNanOp, x), x, step)


def _log_of_sum(power: type[graph.GraphOp], scale: float) -> Ufunc:
    """log(b^x + b^y) of base b, `scale` being 1 / ln b."""

    def combined(o: Ops[Any], x: Any, y: Any) -> Any:
        # One side or the other, and no magnitude: it is smooth where both are equal.
        first = o.compare(x, y, "ge")
        larger, smaller = o.where(first, x, y), o.where(first, y, x)
        alike = o(graph.AndOp, o.compare(x, y, "eq"), is_inf(o, x))
        # Equal infinities have no difference.
        apart = o.where(alike, o.like(0, x), o.sub(smaller, larger))
        more = o(graph.Log1pOp, o(power, apart))
        more = more if scale == 1 else o.mul(more, o.like(scale, x))
        return o.add(larger, more)

    return combined


def modf(o: Ops[Any], x: Any) -> tuple[Any, Any]:
    """(fraction, whole part), both with the sign of x; the fraction of an infinity is 0."""
    whole = trunc(o, x)
    fraction = o.where(is_inf(o, x), o.like(0, x), o.sub(x, whole))
    return o(graph.CopysignOp, fraction, x), whole


UFUNCS: dict[str, Ufunc] = {
    **{name: _comparison(short) for name, short in (
        ("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"),
        ("greater", "gt"), ("greater_equal", "ge"),
    )},
    **{name: _op(op) for name, op in (
        ("add", graph.AddOp), ("subtract", graph.SubOp), ("multiply", graph.MulOp),
        ("divide", graph.DivOp), ("power", graph.PowOp), ("float_power", graph.PowOp),
        ("negative", graph.NegOp), ("sqrt", graph.SqrtOp), ("cbrt", graph.CbrtOp),
        ("copysign", graph.CopysignOp),
        ("exp", graph.ExpOp), ("exp2", graph.Exp2Op), ("expm1", graph.Expm1Op),
        ("log", graph.LogOp), ("log2", graph.Log2Op), ("log10", graph.Log10Op),
        ("log1p", graph.Log1pOp), ("sin", graph.SinOp), ("cos", graph.CosOp), ("tan", graph.TanOp),
        ("arcsin", graph.AsinOp), ("arccos", graph.AcosOp), ("arctan", graph.AtanOp),
        ("arctan2", graph.Atan2Op), ("sinh", graph.SinhOp), ("cosh", graph.CoshOp),
        ("tanh", graph.TanhOp), ("arcsinh", graph.AsinhOp), ("arccosh", graph.AcoshOp),
        ("arctanh", graph.AtanhOp), ("bitwise_and", graph.AndOp), ("bitwise_or", graph.OrOp),
        ("bitwise_xor", graph.XorOp), ("invert", graph.NotOp), ("rint", graph.RoundOp),
        ("left_shift", graph.ShiftLeftOp), ("right_shift", graph.ShiftRightOp),
    )},
    **{name: _rounding(op) for name, op in (("floor", graph.FloorOp), ("ceil", graph.CeilOp))},
    **{name: _logical(op) for name, op in (
        ("logical_and", graph.AndOp), ("logical_or", graph.OrOp), ("logical_xor", graph.XorOp),
        ("logical_not", graph.NotOp),
    )},
    "absolute": absolute,
    "conjugate": _same,
    "deg2rad": _scaled(_radian),
    "degrees": _scaled(_degree),
    "divmod": divmod_of,
    "fabs": absolute,
    "floor_divide": floor_divide,
    "fmax": _numbers("ge"),
    "fmin": _numbers("le"),
    "fmod": fmod,
    "heaviside": heaviside,
    "hypot": hypot,
    "isfinite": is_finite,
    "isinf": is_inf,
    "isnan": is_nan,
    "logaddexp": _log_of_sum(graph.ExpOp, 1.0),
    "logaddexp2": _log_of_sum(graph.Exp2Op, 1 / math.log(2)),
    "maximum": _extremum(graph.MaxOp),
    "minimum": _extremum(graph.MinOp),
    "modf": modf,
    "positive": _same,
    "rad2deg": _scaled(_degree),
    "radians": _scaled(_radian),
    "reciprocal": reciprocal,
    "remainder": remainder,
    "sign": sign,
    "signbit": signbit,
    "square": square,
    "trunc": trunc,
}  # fmt: skip
"""By the ufunc's `__name__`. Of integers `power` to a negative one truncates, where NumPy raises ValueError:
whoever knows the exponent says so."""

SPECIAL: dict[str, Ufunc] = {
    **{name: UFUNCS[name] for name in ("cbrt", "exp2", "expm1", "log1p")},
    "erf": _op(graph.ErfOp),
    "expit": _op(graph.SigmoidOp),
}
"""Ufuncs of `scipy.special`, of floats, by their `__name__`."""
