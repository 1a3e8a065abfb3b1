"""Curves of each column: powers, quantiles, splines. All columns are looked up at once."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    DivOp,
    Expm1Op,
    FloorOp,
    GatherOp,
    IsNanOp,
    Log1pOp,
    LogOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    ReduceOp,
    ReshapeOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC
from irkit.frontends.sklearn.importer import Importer, Transformer
from irkit.frontends.sklearn.normal_quantiles import normal_quantile
from irkit.frontends.sklearn.preprocessing import standard
from irkit.weights import Array

# Powers


def _powers(importer: Importer, logs: SSAValue, exponents: SSAValue, zeros: bool) -> SSAValue:
    """(exp(e * log) - 1) / e; the logarithm where e is 0, which it is nowhere unless `zeros`."""
    build = importer.builder
    if not zeros:
        return build(DivOp, build(Expm1Op, build(MulOp, logs, exponents)), exponents)
    plain = importer.compare(exponents, "eq", [0.0], "zero")
    safe = importer.where(plain, exponents, [1.0], "one")
    return build(WhereOp, plain, logs, _powers(importer, logs, safe, False))


def _power(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    dtype, build = importer.dtype(x), importer.builder
    lambdas = np.asarray(step.lambdas_, np.float64)
    wide = importer.cast(x, np.float64)
    if step.method == "box-cox":
        holds = build(OrOp, importer.compare(wide, "gt", [0.0], "zero"), build(IsNanOp, wide))
        importer.require(holds, "PowerTransformer found a number that is not above 0, with box-cox")
        plain = np.abs(lambdas) < np.finfo(np.float64).eps
        exponents = importer.constant(wide, np.where(plain, 0.0, lambdas)[None], "lambdas")
        y = _powers(importer, build(LogOp, wide), exponents, bool(plain.any()))
    else:
        above = importer.compare(wide, "ge", [0.0], "zero")
        # Of a number below zero that of its magnitude, by 2 less the exponent, turned round.
        sign = build(WhereOp, above, *(importer.constant(wide, [[n]], "sign") for n in (1.0, -1.0)))
        logs = build(Log1pOp, build(AbsOp, wide))
        exponents = importer.add(importer.mul(sign, lambdas - 1.0, "lambdas"), [1.0], "one")
        # Next to 0 and to 2 one of the two may be 0.
        zeros = np.abs(np.abs(lambdas - 1.0) - 1.0) < 1e-12
        y = build(MulOp, sign, _powers(importer, logs, exponents, bool(zeros.any())))
    y = importer.cast(y, dtype)
    if not step.standardize:
        return y
    # Powers may overflow.
    importer.require_finite(y, "the scaler of PowerTransformer", nan=True, infinite=False)
    return standard(importer, step._scaler, y)


# Tables of all columns


def _counted(importer: Importer, x: SSAValue, knots: Array) -> SSAValue:
    """rows×columns of i64: how many knots of its column (columns×knots, in order) each cell reaches."""
    columns, count = knots.shape
    if count < _MANY:
        return _compared(importer, x, importer.constant(x, knots[None], "knots"))
    # Runs of knots, and behind them an empty one: first the run, by the last knot of each, then the knot.
    length = math.isqrt(count - 1) + 1
    runs = count // length + 1
    padded = np.full((columns, runs * length), np.nan, knots.dtype)
    padded[:, :count] = knots
    padded = padded.reshape(columns, runs, length)
    lasts = importer.constant(x, np.ascontiguousarray(padded[None, :, :-1, -1]), "runs")
    run = _compared(importer, x, lasts)
    within = _compared(importer, x, _at(importer, padded, run, "knots"))
    before = importer.mul(run, np.array([[length]], np.int64), "length")
    return importer.builder(AddOp, before, within)


_MANY = 12
"""Knots that are compared in runs."""


def _compared(importer: Importer, x: SSAValue, knots: SSAValue) -> SSAValue:
    """rows×columns of i64: how many of its knots (…×columns×knots) each cell reaches."""
    build = importer.builder
    cells = build(ReshapeOp, x, shape=[DYNAMIC, importer.width(x), 1])
    above = build(CastOp, build(CompareOp, cells, knots, predicate="ge"), to=i64)
    return build(ReduceOp, above, kind="sum", axes=[2], keepdims=False)


def _at(importer: Importer, table: Array, place: SSAValue, hint: str) -> SSAValue:
    """Entries of columns×places(×…), at the place of each cell."""
    width, places = table.shape[:2]
    numbers = importer.add(place, np.arange(width)[None] * places, "columns")
    flat = np.ascontiguousarray(table.reshape(width * places, *table.shape[2:]))
    return importer.builder(GatherOp, importer.builder.constant(flat, hint), numbers, axis=0)


# Quantiles


def _interpolated(importer: Importer, x: SSAValue, knots: Array, values: Array) -> SSAValue:
    """`np.interp` of each column; knots (columns×knots) may be equal, the last of them then counts."""
    below = importer.compare(x, "lt", knots[:, 0][None], "low")
    x = importer.where(
        importer.compare(x, "gt", knots[:, -1][None], "high"), x, knots[:, -1][None], "high"
    )
    place = _counted(importer, x, knots[:, 1:])
    steps = np.diff(knots, axis=1)
    slopes = np.diff(values)[None] / np.where(steps > 0, steps, np.inf)
    # Behind the last knot nothing follows.
    slopes = np.concatenate([slopes, np.zeros((len(knots), 1))], axis=1)
    from_knot = importer.builder(SubOp, x, _at(importer, knots, place, "knots"))
    rise = importer.builder(MulOp, _at(importer, slopes, place, "slopes"), from_knot)
    every = np.broadcast_to(values, knots.shape)
    y = importer.builder(AddOp, rise, _at(importer, every, place, "values"))
    return importer.where(below, y, [[values[0]]], "low")


def _quantile(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    knots = np.ascontiguousarray(np.asarray(step.quantiles_, np.float64).T)
    values, wide = np.asarray(step.references_, np.float64), importer.cast(x, np.float64)
    up = _interpolated(importer, wide, knots, values)
    back = importer.builder(NegOp, wide)
    down = _interpolated(
        importer, back, np.ascontiguousarray(-knots[:, ::-1]), np.ascontiguousarray(-values[::-1])
    )
    y = importer.mul(importer.builder(SubOp, up, down), [0.5], "half")
    normal, dtype = step.output_distribution == "normal", importer.dtype(x)
    for number, end in ((-1, 1.0), (0, 0.0)):
        # Of the normal distribution what is next to an end is the end, in x's own dtype.
        beside = importer.add(x, [[-NEAR if number == 0 else NEAR]], "near") if normal else x
        predicate = ("lt" if number == 0 else "gt") if normal else "eq"
        here = importer.compare(
            importer.cast(beside, np.float64), predicate, knots[:, number][None], "end"
        )
        y = importer.where(here, y, [[end]], "end")
    if not normal:
        return importer.cast(y, dtype)
    # The uniform values are kept in x's dtype, and so are SciPy's quantiles of them.
    y = importer.cast(importer.cast(y, dtype), np.float64)
    return importer.cast(_clipped(importer, normal_quantile(importer, y)), dtype)


NEAR = 1e-7
"""scikit-learn's BOUNDS_THRESHOLD"""


def _clipped(importer: Importer, y: SSAValue) -> SSAValue:
    """No further out than what is next to the ends."""
    from scipy.stats import norm

    low, high = (
        float(cast(Any, norm).ppf(q)) for q in (NEAR - np.spacing(1), 1 - (NEAR - np.spacing(1)))
    )
    y = importer.builder(MaxOp, y, importer.constant(y, [[low]], "low"))
    return importer.builder(MinOp, y, importer.constant(y, [[high]], "high"))


def _why_no_quantiles(step: Any) -> list[str]:
    return ["one quantile"] if step.n_quantiles_ == 1 else []


# Splines


def _splines(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Polynomials of all basis splines in each interval, about its left end, by Horner's rule."""
    dtype, build = importer.dtype(x), importer.builder
    wide = importer.cast(x, np.float64)
    tables = [_spline_tables(spline, step.extrapolation) for spline in step.bsplines_]
    left, powers = (np.stack([table[k] for table in tables]) for k in (0, 1))
    low, high = left[:, 1], np.array([table[2] for table in tables])
    if step.extrapolation == "periodic":
        wide = _wrapped(importer, wide, low, high)
    if step.extrapolation == "error":
        inside = build(
            AndOp,
            importer.compare(wide, "ge", low, "low"),
            importer.compare(wide, "le", high, "high"),
        )
        if step.handle_missing == "zeros":
            inside = build(OrOp, inside, build(IsNanOp, wide))
        importer.require(inside, "SplineTransformer found a value beyond the limits of the knots")
    place = build(
        AddOp,
        _counted(importer, wide, left[:, 1:-1]),
        # The last knot is one of those above, where a basis that ends there is 0 and not nearly so.
        _counted(importer, wide, high[:, None]),
    )
    apart = build(SubOp, wide, _at(importer, left, place, "left"))
    apart = build(ReshapeOp, apart, shape=[DYNAMIC, len(left), 1])
    y = _at(importer, powers[:, :, 0], place, "power")
    for power in range(1, powers.shape[2]):
        y = build(AddOp, build(MulOp, y, apart), _at(importer, powers[:, :, power], place, "power"))
    if step.handle_missing == "zeros":
        gone = build(ReshapeOp, build(IsNanOp, wide), shape=[DYNAMIC, len(left), 1])
        y = importer.where(gone, y, [[[0.0]]], "zero")
    count = powers.shape[3]
    flat = build(ReshapeOp, y, shape=[DYNAMIC, len(left) * count])
    if not step.include_bias:
        flat = importer.columns(flat, [k for k in range(len(left) * count) if (k + 1) % count])
    return importer.cast(flat, dtype)


def _wrapped(importer: Importer, x: SSAValue, low: Array, high: Array) -> SSAValue:
    """x less whole periods; any will do where one number was fitted: `_spline_tables` has constants then."""
    period = np.where(high > low, high - low, 1.0)
    turns = importer.builder(FloorOp, importer.div(importer.sub(x, low, "low"), period, "period"))
    return importer.builder(SubOp, x, importer.mul(turns, period, "period"))


def _spline_tables(spline: Any, extrapolation: str) -> tuple[Array, Array, float]:
    """Left ends of intervals, their polynomials (intervals×powers×splines, highest first), the last knot.

    The first interval lies below all knots, the last above them.
    """
    degree = int(spline.k)
    knots = np.asarray(spline.t)[degree : len(spline.t) - degree]
    low, high = float(knots[0]), float(knots[-1])
    count = int(spline.c.shape[1])
    left = np.concatenate([[low], knots])
    if extrapolation == "periodic" and low == high:
        # scikit-learn takes all numbers for 0.
        constants = np.zeros((len(left), degree + 1, count))
        constants[:, degree] = spline(0.0)
        return left, constants, high
    inner = np.zeros((len(knots) - 1, degree + 1, count))
    factorial = 1.0
    for power in range(degree + 1):
        factorial *= max(power, 1)
        inner[:, degree - power] = np.atleast_2d(spline(knots[:-1], nu=power)) / factorial
    below, above = _beyond(spline, extrapolation, low, high)
    if extrapolation in ("continue", "periodic", "error"):
        below = inner[0]
        # About the last knot, as the interval before it goes on.
        above = _moved(inner[-1], high - float(knots[-2]))
        above[degree] = spline(high)
    if extrapolation == "continue" and low < high:
        below = _continued(spline, low, low - high) if knots[1] == low else below
        above = _continued(spline, high, high - low) if knots[-2] == high else above
    return left, np.concatenate([below[None], inner, above[None]]), high


def _continued(spline: Any, knot: float, reach: float) -> Array:
    """Polynomials (powers×splines, highest first) about an end at which a knot stands twice: SciPy goes on
    with those of the empty interval between, which are known by what it makes of points beyond."""
    beyond = reach * np.arange(1, int(spline.k) + 2) / (int(spline.k) + 1)
    values: Array = spline(knot + beyond)
    return np.linalg.solve(np.vander(beyond), values)


def _beyond(spline: Any, extrapolation: str, low: float, high: float) -> tuple[Array, Array]:
    """Constant or linear polynomials, about the first and the last knot."""
    degree, count = int(spline.k), int(spline.c.shape[1])
    ends = np.zeros((2, degree + 1, count))
    reach = degree + 1 if extrapolation == "linear" and degree <= 1 else degree
    for end, (knot, columns) in enumerate(
        ((low, np.arange(count) < reach), (high, np.arange(count) >= count - reach))
    ):
        ends[end, degree] = np.where(columns, spline(knot), 0.0)
        if extrapolation == "linear" and degree:
            ends[end, degree - 1] = np.where(columns, spline(knot, nu=1), 0.0)
    return ends[0], ends[1]


def _moved(polynomials: Array, step: float) -> Array:
    """Polynomials (powers×splines, highest first) about a point `step` further on."""
    result = np.zeros_like(polynomials)
    for column in range(polynomials.shape[1]):
        shifted = np.poly1d(polynomials[:, column])(np.poly1d([1.0, step]))
        found = np.atleast_1d(shifted.coeffs)
        result[len(result) - len(found) :, column] = found
    return result


def _why_no_splines(step: Any) -> list[str]:
    # Of these scikit-learn takes other knots for the first column than for the others.
    least = {"constant": 1, "linear": 2}.get(step.extrapolation, 0)
    if step.degree >= least:
        return []
    return [f"parameter degree={step.degree} with extrapolation={step.extrapolation!r}"]


TRANSFORMERS: dict[str, Transformer] = {
    "PowerTransformer": Transformer(_power),
    "QuantileTransformer": Transformer(_quantile, why_not_fitted=_why_no_quantiles, bounded=True),
    "SplineTransformer": Transformer(_splines, _why_no_splines, nan="clears"),
}
