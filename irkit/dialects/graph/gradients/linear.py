"""Gradients of matrix products: products again."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import Builder, Linear, Rules, unbroadcast


def product(
    o: Builder, a: SSAValue, b: SSAValue, trans_a: bool, trans_b: bool, alpha: float = 1.0
) -> SSAValue:
    """alpha * op(a) @ op(b) of matrices."""
    return o(graph.GemmOp, a, b, trans_a=trans_a, trans_b=trans_b, alpha=alpha, beta=0.0)


def _flags(op: GraphOp) -> tuple[bool, bool, float]:
    assert isinstance(op, graph.GemmOp)
    return bool(op.trans_a.value.data), bool(op.trans_b.value.data), op.alpha.value.data


def _gemm_a(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    (a, b), alpha = _flags(op)[:2], _flags(op)[2]
    other = op.operands[1]
    return (
        product(o, other, ct, b, True, alpha) if a else product(o, ct, other, False, not b, alpha)
    )


def _gemm_b(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    (a, b), alpha = _flags(op)[:2], _flags(op)[2]
    other = op.operands[0]
    return (
        product(o, ct, other, True, a, alpha) if b else product(o, other, ct, not a, False, alpha)
    )


def _gemm_c(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    assert isinstance(op, graph.GemmOp)
    beta = op.beta.value.data
    scaled = ct if beta == 1 else o.mul(ct, o.like(beta, ct))
    return unbroadcast(o, scaled, o.shape(op.operands[2]))


def _through_a(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return product(o, t, op.operands[1], *_flags(op))


def _through_b(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    return product(o, op.operands[0], t, *_flags(op))


def _through_c(o: Builder, op: GraphOp, t: SSAValue) -> SSAValue:
    assert isinstance(op, graph.GemmOp)
    beta = op.beta.value.data
    scaled = t if beta == 1 else o.mul(t, o.like(beta, t))
    return o.expand(scaled, o.shape(op.results[0]))


def swapped(o: Builder, x: SSAValue) -> SSAValue:
    """The last two dimensions in the other order."""
    rank = len(o.shape(x))
    return o.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _rows(o: Builder, x: SSAValue) -> SSAValue:
    """All leading dimensions as one of rows."""
    *lead, columns = o.shape(x)
    return o.reshape(x, [math.prod(lead), columns])


def _matmul_a(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    a, b = op.operands
    if len(o.shape(b)) == 2:
        return o.reshape(product(o, _rows(o, ct), b, False, True), o.shape(a))
    return unbroadcast(o, o(graph.MatmulOp, ct, swapped(o, b)), o.shape(a))


def _matmul_b(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    a, b = op.operands
    if len(o.shape(b)) == 2:
        # Summed over all leading dimensions, which is what one product of all their rows does.
        return product(o, _rows(o, a), _rows(o, ct), True, False)
    return unbroadcast(o, o(graph.MatmulOp, swapped(o, a), ct), o.shape(b))


RULES: Rules = {
    graph.GemmOp: Linear(
        {0: _gemm_a, 1: _gemm_b, 2: _gemm_c}, {0: _through_a, 1: _through_b, 2: _through_c}
    ),
    graph.MatmulOp: Linear({0: _matmul_a, 1: _matmul_b}),
}
