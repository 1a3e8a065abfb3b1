"""Elementwise ops of integers: arith's, which carry the signedness."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.float_remainder import RemFOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import is_float, is_unsigned, numpy_dtype
from irkit.lower.graph_to_tensor.elementwise import (
    Expression,
    Rule,
    element_of,
    elementwise_rule,
)
from irkit.lower.graph_to_tensor.guarded import remainder
from irkit.lower.graph_to_tensor.scalars import Scalars


def _rem(op: GraphOp) -> Expression:
    if is_float(element_of(op)):
        return lambda s, v: s(RemFOp(v[0], v[1]))
    unsigned = is_unsigned(element_of(op))
    return lambda s, v: remainder(s, v[0], v[1], unsigned)


def _float_mod(s: Scalars, v: Sequence[SSAValue]) -> SSAValue:
    """The dividend's remainder, moved by one divisor where their signs differ."""
    x, y = v
    rest, zero = s(RemFOp(x, y)), s.constant(0.0, x.type)
    below = s(arith.CmpfOp(rest, zero, "olt"))
    differ = s(arith.XOrIOp(below, s(arith.CmpfOp(y, zero, "olt"))))
    moved = s(arith.SelectOp(differ, s(arith.AddfOp(rest, y)), rest))
    none = s(arith.CmpfOp(rest, zero, "oeq"))
    return s(arith.SelectOp(none, s(math.CopySignOp(zero, y)), moved))


def _mod(op: GraphOp) -> Expression:
    if is_float(element_of(op)):
        return lambda s, v: _float_mod(s, v)
    if is_unsigned(element_of(op)):
        return _rem(op)

    def mod(s: Scalars, v: Sequence[SSAValue]) -> SSAValue:
        x, y = v
        rest, zero = remainder(s, x, y, unsigned=False), s.constant(0, x.type)
        below = s(arith.CmpiOp(rest, zero, "slt"))
        signs = s(arith.XOrIOp(below, s(arith.CmpiOp(y, zero, "slt"))))
        wrong = s(arith.AndIOp(s(arith.CmpiOp(rest, zero, "ne")), signs))
        return s(arith.SelectOp(wrong, s(arith.AddiOp(rest, y)), rest))

    return mod


def _not(op: GraphOp) -> Expression:
    element = element_of(op)
    ones = 1 if element == i1 else -1
    return lambda s, v: s(arith.XOrIOp(v[0], s.constant(ones, v[0].type)))


def _shift(op: GraphOp) -> Expression:
    signed = not is_unsigned(element_of(op))
    right = arith.ShRSIOp if signed else arith.ShRUIOp
    made = arith.ShLIOp if isinstance(op, graph.ShiftLeftOp) else right
    width = numpy_dtype(element_of(op)).itemsize * 8

    def shift(s: Scalars, v: Sequence[SSAValue]) -> SSAValue:
        x, bits = v
        # Shifting by the width has no meaning in arith.
        some = s(arith.CmpiOp(bits, s.constant(width, bits.type), "ult"))
        bits = s(arith.MinUIOp(bits, s.constant(width - 1, bits.type)))
        if made is arith.ShRSIOp:
            return s(made(x, bits))
        return s(arith.SelectOp(some, s(made(x, bits)), s.constant(0, x.type)))

    return shift


def _xor(op: GraphOp) -> Expression:
    return lambda s, v: s(arith.XOrIOp(v[0], v[1]))


RULES: dict[type[GraphOp], Rule] = {
    graph.ModOp: elementwise_rule(_mod),
    graph.NotOp: elementwise_rule(_not),
    graph.RemOp: elementwise_rule(_rem),
    graph.ShiftLeftOp: elementwise_rule(_shift),
    graph.ShiftRightOp: elementwise_rule(_shift),
    graph.XorOp: elementwise_rule(_xor),
}
