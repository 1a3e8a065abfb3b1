"""Gradients of rounding, trigonometric and hyperbolic functions.

Roundings are step functions: 0, as PyTorch has them.
"""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.elementwise import over, times
from irkit.dialects.graph.gradients.rule import Builder, Elementwise, Flat, Rule, Rules, Scale


def _one_less_square(o: Builder, x: SSAValue) -> SSAValue:
    # As a product, which loses nothing near 1.
    one = o.like(1, x)
    return o.mul(o.sub(one, x), o.add(one, x))


def _one_more_square(o: Builder, x: SSAValue) -> SSAValue:
    return o.add(o.like(1, x), o.mul(x, x))


def _asin(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o(graph.SqrtOp, _one_less_square(o, x))


def _acos(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o(graph.NegOp, _asin(o, x, y))


def _acosh(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    one = o.like(1, x)
    return o(graph.SqrtOp, o.mul(o.sub(x, one), o.add(x, one)))


def _asinh(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o(graph.SqrtOp, _one_more_square(o, x))


def _atanh(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return _one_less_square(o, x)


def _cbrt(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o.mul(o.like(3, y), o.mul(y, y))


def _minus_sin(o: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return o(graph.NegOp, o(graph.SinOp, x))


def _angle(mine: int) -> Scale:
    """Of atan2(y, x): x / (x² + y²) by y, -y / (x² + y²) by x."""

    def scale(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
        y, x = op.operands
        length = o.add(o.mul(x, x), o.mul(y, y))
        other = x if mine == 0 else o(graph.NegOp, y)
        return o.mul(t, o.div(other, length))

    return scale


def _logarithm(base: float) -> Rule:
    return over(lambda o, x, y: o.mul(o.like(math.log(base), x), x))


RULES: Rules = {
    graph.AcosOp: over(_acos),
    graph.AcoshOp: over(_acosh),
    graph.AsinOp: over(_asin),
    graph.AsinhOp: over(_asinh),
    graph.Atan2Op: Elementwise((_angle(0), _angle(1))),
    graph.AtanOp: over(lambda o, x, y: _one_more_square(o, x)),
    graph.AtanhOp: over(_atanh),
    graph.CbrtOp: over(_cbrt),
    graph.CeilOp: Flat(),
    graph.CosOp: times(_minus_sin),
    graph.CoshOp: times(lambda o, x, y: o(graph.SinhOp, x)),
    graph.Exp2Op: times(lambda o, x, y: o.mul(o.like(math.log(2), y), y)),
    graph.Expm1Op: times(lambda o, x, y: o(graph.ExpOp, x)),
    graph.FloorOp: Flat(),
    graph.Log10Op: _logarithm(10),
    graph.Log1pOp: over(lambda o, x, y: o.add(o.like(1, x), x)),
    graph.Log2Op: _logarithm(2),
    graph.RoundOp: Flat(),
    graph.SinOp: times(lambda o, x, y: o(graph.CosOp, x)),
    graph.SinhOp: times(lambda o, x, y: o(graph.CoshOp, x)),
    graph.TanOp: times(lambda o, x, y: _one_more_square(o, y)),
}
