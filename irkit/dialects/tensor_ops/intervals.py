"""Half-open intervals of indices: cut, moved, carried through affine expressions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from irkit.dialects.tensor_ops.interface import Interval
from irkit.errors import UnsupportedError


def clipped(interval: Interval, size: int) -> Interval:
    """What of an interval lies in [0, size)."""
    low = min(max(interval[0], 0), size)
    return low, max(min(interval[1], size), low)


def strided(interval: Interval, offset: int, step: int) -> Interval:
    """What `interval` of a slice is of its source."""
    first, last = offset + interval[0] * step, offset + (interval[1] - 1) * step
    return min(first, last), max(first, last) + 1


def of_affine(expr: AffineExpr, loops: Sequence[Interval]) -> Interval:
    """The range of an affine expression over ranges of loops. Raises UnsupportedError."""
    if isinstance(expr, AffineDimExpr):
        return loops[expr.position]
    if isinstance(expr, AffineConstantExpr):
        return expr.value, expr.value + 1
    if not isinstance(expr, AffineBinaryOpExpr):
        raise UnsupportedError(f"indexing map with {expr}")
    (a, b), (c, d) = of_affine(expr.lhs, loops), of_affine(expr.rhs, loops)
    if expr.kind == AffineBinaryOpKind.Add:
        return a + c, b + d - 1
    if expr.kind == AffineBinaryOpKind.Mul:
        corners = [a * c, a * (d - 1), (b - 1) * c, (b - 1) * (d - 1)]
        return min(corners), max(corners) + 1
    if d == c + 1 and c > 0:
        quotients = a // c, max((b - 1) // c + 1, a // c)
        if expr.kind == AffineBinaryOpKind.FloorDiv:
            return quotients
        if expr.kind == AffineBinaryOpKind.Mod:
            # All remainders, unless the range is within one quotient.
            alone = quotients[1] <= quotients[0] + 1
            return (a % c, a % c + b - a) if alone else (0, c)
    raise UnsupportedError(f"indexing map with {expr.kind}")
