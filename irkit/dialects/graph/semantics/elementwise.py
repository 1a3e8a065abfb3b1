"""Meaning of elementwise ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.bfloat16 import is_half
from irkit.dialects import graph
from irkit.dialects.fused import multiply_add
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
    """Quotient; integers truncate towards zero, and x / 0 is 0."""
    if lhs.dtype.kind == "f":
        return lhs / rhs
    # NumPy's // rounds down, and is 0 where the divisor is.
    quotient = lhs // rhs
    below = ((lhs < 0) != (rhs < 0)) & (lhs % rhs != 0)
    return quotient + below.astype(quotient.dtype)


def maximum(lhs: Array, rhs: Array) -> Array:
    """The larger; NaN if either is, and of zeros the second, which NumPy's own leaves open."""
    return np.where((lhs > rhs) | (lhs != lhs), lhs, rhs)


def minimum(lhs: Array, rhs: Array) -> Array:
    """The smaller; NaN if either is, and of zeros the second."""
    return np.where((lhs < rhs) | (lhs != lhs), lhs, rhs)


def power(lhs: Array, rhs: Array) -> Array:
    """C's pow; integers wrap, and to a negative power are truncated."""
    if lhs.dtype.kind != "i":
        # Where one exponent holds for all, NumPy takes 0.5 for a root, which has signs of its own.
        edge = (rhs == 0.5) & ((lhs == 0) | (lhs == -np.inf))
        return np.where(edge, np.abs(lhs), np.power(lhs, rhs))
    inverse = np.where(lhs == -1, np.where(rhs & 1, -1, 1), lhs == 1).astype(lhs.dtype)
    return np.where(rhs < 0, inverse, np.power(lhs, np.where(rhs < 0, 0, rhs).astype(rhs.dtype)))


def erf(x: Array) -> Array:
    """The error function, of the C library."""
    flat = [math.erf(v) for v in x.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(x.shape).astype(x.dtype)


def relu(x: Array) -> Array:
    """max(x, 0); NaN stays."""
    return maximum(x, x.dtype.type(0))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))"""
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` as another type, where NumPy leaves nothing open; a float as an integer by way of 64 bits."""
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    upper = np.iinfo(np.int64).max
    wide = np.where(x >= 2.0**63, upper, np.where(x > -(2.0**63), x, 0.0).astype(np.int64))
    wide = np.where(x <= -(2.0**63), np.iinfo(np.int64).min, wide)
    if dtype != np.uint64:
        return wide.astype(dtype)
    largest = np.iinfo(np.uint64).max
    high = np.where(x >= 2.0**64, largest, np.where(x < 2.0**64, x, 0.0).astype(np.uint64))
    return np.where(x >= 2.0**63, high, wide.astype(np.uint64))


def _cast(op: graph.CastOp, x: Array) -> Array:
    dtype = numpy_dtype(op.to)
    # To a float of 16 bits by way of float32, as everything else that gives one.
    return convert(x, np.dtype(np.float32) if is_half(dtype) else dtype)


def _clip(op: graph.ClipOp, x: Array) -> Array:
    low, high = (x.dtype.type(limit.value.data) for limit in (op.min, op.max))
    return minimum(high, maximum(low, x))


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


def _multiply_add(op: graph.FmaOp, x: Array, y: Array, z: Array) -> Array:
    return multiply_add(x, y, z)


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
    graph.ErfOp: unary(erf),
    graph.ExpOp: unary(np.exp),
    graph.FloorOp: unary(np.floor),
    graph.IsNanOp: unary(np.isnan),
    graph.LogOp: unary(np.log),
    graph.MaxOp: binary(maximum),
    graph.MinOp: binary(minimum),
    graph.MulOp: binary(np.multiply),
    graph.NegOp: unary(np.negative),
    graph.OrOp: binary(np.bitwise_or),
    graph.PowOp: binary(power),
    graph.ReluOp: unary(relu),
    graph.SigmoidOp: unary(sigmoid),
    graph.SqrtOp: unary(np.sqrt),
    graph.SubOp: binary(np.subtract),
    graph.TanhOp: unary(np.tanh),
    graph.FmaOp: _multiply_add,
    graph.WhereOp: _where,
}
