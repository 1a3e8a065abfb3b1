"""Meaning of elementwise ops."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics.rule import Rule, Rules
from irkit.dialects.types import numpy_dtype
from irkit.weights import Array


def unary(function: Callable[[Array], Array]) -> Rule:
    """A function of one array as a rule."""

    def rule(op: GraphOp, x: Array) -> Array:
        return function(x)

    return rule


def binary(function: Callable[[Array, Array], Array]) -> Rule:
    """A function of two arrays as a rule."""

    def rule(op: GraphOp, lhs: Array, rhs: Array) -> Array:
        return function(lhs, rhs)

    return rule


def divide(lhs: Array, rhs: Array) -> Array:
    """Quotient; integers truncate towards zero."""
    if lhs.dtype.kind == "f":
        return lhs / rhs
    # NumPy's // rounds down; integers here truncate towards zero.
    quotient = np.abs(lhs) // np.abs(rhs)
    return np.where((lhs < 0) != (rhs < 0), -quotient, quotient)


def _erf(x: Array) -> Array:
    flat = [math.erf(v) for v in x.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(x.shape).astype(x.dtype)


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))"""
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def _cast(op: graph.CastOp, x: Array) -> Array:
    return x.astype(numpy_dtype(op.to))


def _clip(op: graph.ClipOp, x: Array) -> Array:
    low, high = (x.dtype.type(limit.value.data) for limit in (op.min, op.max))
    return np.minimum(np.maximum(x, low), high)


PREDICATES: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare(op: graph.CompareOp, lhs: Array, rhs: Array) -> Array:
    return PREDICATES[op.predicate.data](lhs, rhs)


def _where(op: graph.WhereOp, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


RULES: Rules = {
    graph.AbsOp: unary(np.abs),
    graph.AddOp: binary(np.add),
    graph.AndOp: binary(np.bitwise_and),
    graph.CastOp: _cast,
    graph.ClipOp: _clip,
    graph.CompareOp: _compare,
    graph.DivOp: binary(divide),
    graph.ErfOp: unary(_erf),
    graph.ExpOp: unary(np.exp),
    graph.FloorOp: unary(np.floor),
    graph.IsNanOp: unary(np.isnan),
    graph.LogOp: unary(np.log),
    graph.MaxOp: binary(np.maximum),
    graph.MinOp: binary(np.minimum),
    graph.MulOp: binary(np.multiply),
    graph.NegOp: unary(np.negative),
    graph.OrOp: binary(np.bitwise_or),
    graph.PowOp: binary(np.power),
    graph.ReluOp: unary(_relu),
    graph.SigmoidOp: unary(sigmoid),
    graph.SqrtOp: unary(np.sqrt),
    graph.SubOp: binary(np.subtract),
    graph.TanhOp: unary(np.tanh),
    graph.WhereOp: _where,
}
