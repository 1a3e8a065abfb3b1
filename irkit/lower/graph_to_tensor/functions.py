"""Rounding, trigonometric and hyperbolic functions: math's own ops."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import math
from xdsl.ir import Operation, SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.lower.graph_to_tensor.elementwise import Expression, Rule, elementwise_rule

_OPS: dict[type[GraphOp], Callable[[SSAValue], Operation]] = {
    graph.AcosOp: math.AcosOp,
    graph.AcoshOp: math.AcoshOp,
    graph.AsinOp: math.AsinOp,
    graph.AsinhOp: math.AsinhOp,
    graph.AtanOp: math.AtanOp,
    graph.AtanhOp: math.AtanhOp,
    graph.CbrtOp: math.CbrtOp,
    graph.CeilOp: math.CeilOp,
    graph.CosOp: math.CosOp,
    graph.CoshOp: math.CoshOp,
    graph.Exp2Op: math.Exp2Op,
    graph.Expm1Op: math.ExpM1Op,
    graph.Log10Op: math.Log10Op,
    graph.Log1pOp: math.Log1pOp,
    graph.Log2Op: math.Log2Op,
    graph.RoundOp: math.RoundEvenOp,
    graph.SinOp: math.SinOp,
    graph.SinhOp: math.SinhOp,
    graph.TanOp: math.TanOp,
}


_PAIRS: dict[type[GraphOp], Callable[[SSAValue, SSAValue], Operation]] = {
    graph.Atan2Op: math.Atan2Op,
    graph.CopysignOp: math.CopySignOp,
}


def _function(op: GraphOp) -> Expression:
    made = _OPS[type(op)]
    return lambda s, v: s(made(v[0]))


def _pair(op: GraphOp) -> Expression:
    made = _PAIRS[type(op)]
    return lambda s, v: s(made(v[0], v[1]))


RULES: dict[type[GraphOp], Rule] = {
    **{op: elementwise_rule(_function) for op in _OPS},
    **{op: elementwise_rule(_pair) for op in _PAIRS},
}
