"""Meaning of matrix products."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.graph.semantics.rule import Rules, factors
from irkit.weights import Array


def _gemm(op: graph.GemmOp, a: Array, b: Array, c: Array | None = None) -> Array:
    a, b = factors(op, a, b)
    a = a.T if op.trans_a.value.data else a
    b = b.T if op.trans_b.value.data else b
    y = a.dtype.type(op.alpha.value.data) * (a @ b)
    return y if c is None else y + c.dtype.type(op.beta.value.data) * c


def _matmul(op: graph.MatmulOp, a: Array, b: Array) -> Array:
    a, b = factors(op, a, b)
    return a @ b


RULES: Rules = {
    graph.GemmOp: _gemm,
    graph.MatmulOp: _matmul,
}
