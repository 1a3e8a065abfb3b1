"""Division that rounds down, and remainders, as NumPy has them: of floats by way of an exact remainder."""

from __future__ import annotations

from typing import Any

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops


def fmod(o: Ops[Any], x: Any, y: Any) -> Any:
    """The remainder with the sign of x."""
    return o(graph.RemOp, x, y)


def remainder(o: Ops[Any], x: Any, y: Any) -> Any:
    """The remainder with the sign of y."""
    return o(graph.ModOp, x, y)


def _floor_of_integers(o: Ops[Any], x: Any, y: Any) -> Any:
    quotient = o.div(x, y)
    if o.dtype(x).kind == "u":
        return quotient
    left = o.compare(fmod(o, x, y), o.like(0, x), "ne")
    apart = o(graph.XorOp, o.below(x, 0), o.below(y, 0))
    return o.sub(quotient, o.cast(o(graph.AndOp, left, apart), o.dtype(x)))


def floor_divide(o: Ops[Any], x: Any, y: Any) -> Any:
    """The quotient rounded down. Of integers 0 by 0; of floats x / 0, and NaN of infinite dividends."""
    if not o.is_float(x):
        return _floor_of_integers(o, x, y)
    zero, plain, rest = o.like(0, x), o.div(x, y), fmod(o, x, y)
    # Nearly whole, as the exact remainder is taken away before.
    near = o.div(o.sub(x, rest), y)
    apart = o(graph.XorOp, o.below(y, 0), o.below(rest, 0))
    lower = o(graph.AndOp, o.compare(rest, zero, "ne"), apart)
    near = o.where(lower, o.sub(near, o.like(1, x)), near)
    floor = o(graph.FloorOp, near)
    up = o.above(o.sub(near, floor), 0.5)
    floor = o.where(up, o.add(floor, o.like(1, x)), floor)
    floor = o.where(o.equals(near, 0), o(graph.CopysignOp, zero, plain), floor)
    return o.where(o.equals(y, 0), plain, floor)


def divmod_of(o: Ops[Any], x: Any, y: Any) -> tuple[Any, Any]:
    """(floor_divide, remainder)"""
    return floor_divide(o, x, y), remainder(o, x, y)
