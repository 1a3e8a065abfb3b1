"""Gradients of elementwise ops.

Where there is no derivative, PyTorch's choice is made: of `relu` and `abs` 0 at 0; of `max` and `min` one half to each
of two that are equal; of `clip` 1 at its limits; of `sqrt` infinity at 0; of `pow` by its exponent 0 where 0 is raised
to a power of 0 or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import (
    Builder,
    Elementwise,
    Linear,
    Maybe,
    Rule,
    Rules,
    Scale,
)
from irkit.dialects.types import numpy_dtype, tensor_type

Factor = Callable[[Builder, SSAValue, SSAValue], SSAValue]
"""The derivative of a function of one operand, from its operand and its result."""


def times(factor: Factor) -> Rule:
    """A function whose derivative is a factor."""

    def scale(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
        return o.mul(t, factor(o, op.operands[0], op.results[0]))

    return Elementwise((scale,))


def over(divisor: Factor) -> Rule:
    """A function whose derivative is one over a divisor."""

    def scale(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
        return o.div(t, divisor(o, op.operands[0], op.results[0]))

    return Elementwise((scale,))


def where(condition: Callable[[Builder, GraphOp], SSAValue]) -> Scale:
    """1 where a condition holds, else 0."""

    def scale(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
        return o.where(condition(o, op), t, o.like(0, t))

    return scale


def same(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    """As it is."""
    return t


def negated(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    """Times -1."""
    return o(graph.NegOp, t)


def sign(o: Builder, x: SSAValue) -> SSAValue:
    """-1, 0 or 1; 0 of NaN too, of which nothing hangs."""
    zero, one = o.like(0, x), o.like(1, x)
    positive = o.where(o.compare(x, zero, "gt"), one, zero)
    return o.where(o.compare(x, zero, "lt"), o.like(-1, x), positive)


def _abs(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.mul(t, sign(o, op.operands[0]))


def _by_rhs(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.mul(t, op.operands[1])


def _by_lhs(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.mul(t, op.operands[0])


def _over_rhs(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.div(t, op.operands[1])


def _divisor(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o(graph.NegOp, o.mul(t, o.div(op.results[0], op.operands[1])))


def _base(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    x, y = op.operands
    # Of 1 where the exponent is 0 and 1 / x is no number: zero times that is not met, nor when this is
    # differentiated again. Elsewhere it is a product, which has its own derivative by the exponent.
    one = o.like(1, x)
    inverse = o.below(o(graph.AbsOp, o.div(one, x)), math.inf)
    base = o.where(o.equals(y, 0), o.where(inverse, x, one), x)
    return o.mul(t, o.mul(y, o(graph.PowOp, base, o.sub(y, o.like(1, y)))))


def _exponent(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    x, y = op.operands
    vanishes = o(graph.AndOp, o.equals(x, 0), o.compare(y, o.like(0, y), "ge"))
    # Of 1 there where nothing hangs on the logarithm, so that zero times infinity is not met again.
    logarithm = o(graph.LogOp, o.where(vanishes, o.like(1, x), x))
    return o.mul(t, o.mul(op.results[0], logarithm))


def _extremum(predicate: str, mine: int) -> Scale:
    """1 where the operand is chosen, one half where both are equal."""

    def scale(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
        own, other = op.operands[mine], op.operands[1 - mine]
        half = o.mul(t, o.like(0.5, t))
        rest = o.where(o.compare(own, other, "eq"), half, o.like(0, t))
        return o.where(o.compare(own, other, predicate), t, rest)

    return scale


def _inside(o: Builder, op: GraphOp) -> SSAValue:
    assert isinstance(op, graph.ClipOp)
    low, high = (o.like(limit.value.data, op.x) for limit in (op.min, op.max))
    return o(graph.AndOp, o.compare(op.x, low, "ge"), o.compare(op.x, high, "le"))


def _sigmoid(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o.mul(y, o.sub(o.like(1, y), y))


def _tanh(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o.sub(o.like(1, y), o.mul(y, y))


def _erf(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    bell = o(graph.ExpOp, o(graph.NegOp, o.mul(x, x)))
    return o.mul(o.like(2 / math.sqrt(math.pi), x), bell)


def _chosen(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.where(op.operands[0], t, o.like(0, t))


def _passed_over(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.where(op.operands[0], o.like(0, t), t)


def _cast_back(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return o.cast(t, numpy_dtype(tensor_type(op.operands[0]).element_type))


def _cast(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    assert isinstance(op, graph.CastOp)
    return o.cast(t, numpy_dtype(op.to))


def _copied_sign(o: Builder, op: GraphOp, t: SSAValue) -> Maybe:
    x, y = op.operands
    return o.mul(t, o.mul(sign(o, x), o(graph.CopysignOp, o.like(1, y), y)))


def remainder(o: Builder, op: GraphOp, t: SSAValue) -> Maybe:
    """A remainder by its divisor: less the whole quotient."""
    x, y = op.operands
    whole = o(graph.RoundOp, o.div(o.sub(x, op.results[0]), y))
    return o(graph.NegOp, o.mul(t, whole))


RULES: Rules = {
    graph.AbsOp: Elementwise((_abs,)),
    graph.AddOp: Elementwise((same, same)),
    graph.CastOp: Linear({0: _cast_back}, {0: _cast}),
    graph.ClipOp: Elementwise((where(_inside),)),
    graph.CopysignOp: Elementwise((_copied_sign, None)),
    graph.DivOp: Elementwise((_over_rhs, _divisor)),
    graph.ErfOp: times(_erf),
    graph.ExpOp: times(lambda o, x, y: y),
    graph.FmaOp: Elementwise((_by_rhs, _by_lhs, same)),
    graph.LogOp: over(lambda o, x, y: x),
    graph.MaxOp: Elementwise((_extremum("gt", 0), _extremum("gt", 1))),
    graph.MinOp: Elementwise((_extremum("lt", 0), _extremum("lt", 1))),
    graph.ModOp: Elementwise((same, remainder)),
    graph.MulOp: Elementwise((_by_rhs, _by_lhs)),
    graph.NegOp: Elementwise((negated,)),
    graph.PowOp: Elementwise((_base, _exponent)),
    graph.ReluOp: Elementwise((where(lambda o, op: o.above(op.results[0], 0)),)),
    graph.RemOp: Elementwise((same, remainder)),
    graph.SigmoidOp: times(_sigmoid),
    graph.SqrtOp: over(lambda o, x, y: o.mul(o.like(2, y), y)),
    graph.SubOp: Elementwise((same, negated)),
    graph.TanhOp: times(_tanh),
    graph.WhereOp: Elementwise((None, _chosen, _passed_over)),
}
