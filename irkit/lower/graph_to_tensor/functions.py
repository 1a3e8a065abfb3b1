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
    graph.CeilOp: math.CeilOp,
    graph.CosOp: math.CosOp,
    graph.CoshOp: math.CoshOp,
    graph.Log1pOp: math.Log1pOp,
    graph.RoundOp: math.RoundEvenOp,
    graph.SinOp: math.SinOp,
    graph.SinhOp: math.SinhOp,
    graph.TanOp: math.TanOp,
}


def _function(op: GraphOp) -> Expression:
    made = _OPS[type(op)]
    return lambda s, v: s(made(v[0]))


RULES: dict[type[GraphOp], Rule] = {op: elementwise_rule(_function) for op in _OPS}
