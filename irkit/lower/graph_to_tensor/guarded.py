"""Scalar arithmetic where `arith` and `math` leave cases open: they are chosen apart, by selects.

Division by zero and of the least integer by -1, integers to negative powers, floats that do not fit the
integer that they are converted to. Operands are signless.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from irkit.dialects.types import numpy_dtype
from irkit.lower.graph_to_tensor.scalars import Scalars


def _known(value: SSAValue) -> int | None:
    """The number that a scalar constant is."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def _is(s: Scalars, x: SSAValue, value: int, predicate: str = "eq") -> SSAValue:
    return s(arith.CmpiOp(x, s.constant(value, x.type), predicate))


def _width(x: SSAValue) -> int:
    return numpy_dtype(x.type).itemsize * 8


def quotient(s: Scalars, x: SSAValue, y: SSAValue, unsigned: bool) -> SSAValue:
    """x / y towards zero; 0 where y is 0, and the least integer / -1 wraps."""
    made = arith.DivUIOp if unsigned else arith.DivSIOp
    if _known(y) not in (None, 0, -1):
        return s(made(x, y))
    zero, safe = _is(s, y, 0), _divisor(s, y, unsigned)
    result = s(made(x, safe))
    if not unsigned:
        negated = s(arith.SubiOp(s.constant(0, x.type), x))
        result = s(arith.SelectOp(_is(s, y, -1), negated, result))
    return s(arith.SelectOp(zero, s.constant(0, x.type), result))


def remainder(s: Scalars, x: SSAValue, y: SSAValue, unsigned: bool) -> SSAValue:
    """x - y * quotient(x, y) with the sign of x; 0 where y is 0."""
    made = arith.RemUIOp if unsigned else arith.RemSIOp
    return s(made(x, _divisor(s, y, unsigned)))


def _divisor(s: Scalars, y: SSAValue, unsigned: bool) -> SSAValue:
    """y, or 1 where division by y is left open."""
    if _known(y) not in (None, 0, -1):
        return y
    left_open = _is(s, y, 0)
    if not unsigned:
        left_open = s(arith.OrIOp(left_open, _is(s, y, -1)))
    return s(arith.SelectOp(left_open, s.constant(1, y.type), y))


def power(s: Scalars, x: SSAValue, y: SSAValue, unsigned: bool) -> SSAValue:
    """x^y, wrapped; of a negative y truncated: 1 of 1, 1 or -1 of -1, else 0."""
    if (known := _known(y)) is not None and known >= 0:
        return s(math.IPowIOp(x, y))
    negative = _is(s, y, 0, "slt")
    if unsigned:
        # The highest bit of y adds 2^(w-1) to the power: that is 1 of odd numbers, 0 of even ones.
        rest = s(arith.AndIOp(y, s.constant((1 << (_width(y) - 1)) - 1, y.type)))
        even = _is(s, s(arith.AndIOp(x, s.constant(1, x.type))), 0)
        none = s(arith.AndIOp(negative, even))
        return s(arith.SelectOp(none, s.constant(0, x.type), s(math.IPowIOp(x, rest))))
    usual = s(math.IPowIOp(x, s(arith.MaxSIOp(y, s.constant(0, y.type)))))
    odd = s(arith.AndIOp(y, s.constant(1, y.type)))
    sign = s(arith.SelectOp(_is(s, odd, 0), s.constant(1, x.type), s.constant(-1, x.type)))
    inverse = s(arith.SelectOp(_is(s, x, 1), s.constant(1, x.type), s.constant(0, x.type)))
    inverse = s(arith.SelectOp(_is(s, x, -1), sign, inverse))
    return s(arith.SelectOp(negative, inverse, usual))


def truncated(s: Scalars, x: SSAValue) -> SSAValue:
    """The float x as i64, towards zero: the nearest i64 where x is out of range, 0 for NaN."""
    limits = (-(2.0**63), 2.0**63)
    low, high = (s.constant(limit, x.type) for limit in limits)
    inside = s(arith.CmpfOp(x, low, "ogt"))
    above = s(arith.CmpfOp(x, high, "oge"))
    number = s(arith.CmpfOp(x, x, "oeq"))
    least, most = s.constant(-(1 << 63), i64), s.constant((1 << 63) - 1, i64)
    outside = s(arith.SelectOp(number, least, s.constant(0, i64)))
    result = s(arith.SelectOp(inside, s(arith.FPToSIOp(x, i64)), outside))
    return s(arith.SelectOp(above, most, result))


def truncated_unsigned(s: Scalars, x: SSAValue) -> SSAValue:
    """The float x as the i64 of a ui64's bits: as `truncated`, but up to 2^64 - 1."""
    half, whole = (s.constant(2.0**power, x.type) for power in (63, 64))
    upper = s(arith.CmpfOp(x, half, "oge"))
    above = s(arith.CmpfOp(x, whole, "oge"))
    high = s(arith.SelectOp(above, s.constant(-1, i64), s(arith.FPToUIOp(x, i64))))
    return s(arith.SelectOp(upper, high, truncated(s, x)))
