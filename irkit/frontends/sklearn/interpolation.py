"""Piecewise linear functions: the interval by comparing with all knots, then its line."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import AddOp, CastOp, GatherOp, MulOp, SubOp
from irkit.frontends.sklearn.importer import Importer


def interval(importer: Importer, x: SSAValue, knots: Any, side: str = "left") -> SSAValue:
    """rows×1 of i64: how many knots lie below a cell ("left") or at or below it ("right"), as
    `np.searchsorted`."""
    predicate = "gt" if side == "left" else "ge"
    above = importer.compare(x, predicate, np.asarray(knots)[None, :], "knots")
    return importer.reduce("sum", importer.builder(CastOp, above, to=i64))


def interpolated(importer: Importer, x: SSAValue, knots: Any, values: Any) -> SSAValue:
    """The line between the two knots (in order) around each cell, rows×1; beyond all the value at the end."""
    knots, values = np.asarray(knots), np.asarray(values)
    build, dtype = importer.builder, np.result_type(importer.dtype(x), knots, values)
    if len(knots) == 1:
        zero = importer.mul(importer.cast(x, dtype), [0.0], "zero")
        return importer.add(zero, [values[0]], "value")
    x = importer.cast(x, dtype)
    x = importer.where(importer.compare(x, "lt", [knots[0]], "low"), x, [knots[0]], "low")
    x = importer.where(importer.compare(x, "gt", [knots[-1]], "high"), x, [knots[-1]], "high")
    # The first interval has what is at its own left end too.
    place = interval(importer, x, knots[1:-1]) if len(knots) > 2 else importer.full(x, 0, np.int64)
    place = importer.flat(place)
    slopes = np.diff(values) / np.diff(knots)

    def at(table: Any, hint: str) -> SSAValue:
        found = build(GatherOp, build.constant(np.asarray(table, dtype), hint), place, axis=0)
        return importer.column(found)

    from_knot = build(SubOp, x, at(knots[:-1], "knots"))
    return build(AddOp, build(MulOp, at(slopes, "slopes"), from_knot), at(values[:-1], "values"))
