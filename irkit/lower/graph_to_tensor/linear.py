"""Matrix products: one contraction, transpositions being only a matter of its maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.precision import precision_of
from irkit.dialects.types import is_float, numpy_dtype, tensor_type
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.nests import Index, broadcast_index
from irkit.lower.graph_to_tensor.scalars import Scalars


def scaled(s: Scalars, x: SSAValue, factor: float) -> SSAValue:
    """`x * factor`, or `x` if the factor is 1."""
    if factor == 1:
        return x
    by = s.constant(factor, x.type)
    return s(arith.MulfOp(x, by) if is_float(x.type) else arith.MuliOp(x, by))


def _gemm(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.GemmOp)
    alpha, beta = op.alpha.value.data, op.beta.value.data
    t = tensor_type(op.y)
    weights = _scaled_constant(b, op.b, alpha)
    # Factors are rounded as they are: what is scaled before is rounded otherwise.
    if weights is not None and (alpha == 1 or precision_of(op).strict):
        return [_product(b, op, weights, _init(b, op, op.c, beta))]
    product = _product(b, op, op.b, _init(b, op, None, beta))
    terms = [product] if op.c is None else [product, op.c]

    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        y = scaled(s, args[0], alpha)
        for c in args[1:]:
            add = arith.AddfOp if is_float(c.type) else arith.AddiOp
            y = s(add(y, scaled(s, c, beta)))
        return y

    return [b.elementwise(t.get_shape(), t.element_type, terms, body)]


def _scaled_constant(b: TensorBuilder, value: SSAValue, factor: float) -> SSAValue | None:
    """`value * factor` where that needs no op: the factor is 1, or the value is constant."""
    if factor == 1:
        return value
    dtype = numpy_dtype(tensor_type(value).element_type).type
    return b.packed(value, ("scaled", factor), lambda array: np.multiply(array, dtype(factor)))


def _init(b: TensorBuilder, op: graph.GemmOp, c: SSAValue | None, beta: float) -> SSAValue:
    """What the product is added to: zero, or beta * c over the result's shape."""
    t = tensor_type(op.y)
    like = [op.a, op.b]
    if c is None:
        return b.fill(0, t.get_shape(), t.element_type, like)
    constant = _scaled_constant(b, c, beta)
    if constant is not None:
        c, beta = constant, 1.0
    index = broadcast_index(tensor_type(c), t.get_shape())
    made = b.map(
        t.get_shape(), [t.element_type], [(c, index)], lambda s, x: [scaled(s, x[0], beta)], like
    )
    return made[0]


def _product(b: TensorBuilder, op: graph.GemmOp, weights: SSAValue, init: SSAValue) -> SSAValue:
    m, n, k = 0, 1, 2
    left = (k, m) if op.trans_a.value.data else (m, k)
    right = (n, k) if op.trans_b.value.data else (k, n)
    return b.contract((op.a, left), (weights, right), (init, (m, n)), 1)


def _matmul(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.MatmulOp)
    t = tensor_type(op.y)
    shape = t.get_shape()
    rank = len(shape)
    m, n, k = rank - 2, rank - 1, rank

    def index(value: SSAValue, *last: int) -> Index:
        """Leading dimensions broadcast, the last two are `last`."""
        lead = broadcast_index(tensor_type(value), shape)[:-2]
        return [*lead, *last]

    init = b.fill(0, shape, t.element_type, [op.a, op.b])
    left, right = index(op.a, m, k), index(op.b, k, n)
    return [b.contract((op.a, left), (op.b, right), (init, list(range(rank))), 1)]


RULES: dict[type[GraphOp], Rule] = {graph.GemmOp: _gemm, graph.MatmulOp: _matmul}
