"""Softmax, batch normalisation and local response normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import tensor_type
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.nests import ZERO
from irkit.lower.graph_to_tensor.scalars import Scalars


def _batch_norm(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.BatchNormOp)
    t = tensor_type(op.x)
    shape, epsilon = t.get_shape(), op.epsilon.value.data
    channel = [1 if shape[1] != 1 else ZERO]
    inputs = [(op.x, list(range(len(shape)))), *((v, channel) for v in op.operands[1:])]

    def body(s: Scalars, x: SSAValue, scale: SSAValue, bias: SSAValue, mean: SSAValue,
             variance: SSAValue) -> SSAValue:  # fmt: skip
        raised = s(arith.AddfOp(variance, s.constant(epsilon, t.element_type)))
        y = s(arith.DivfOp(s(arith.SubfOp(x, mean)), s(math.SqrtOp(raised))))
        return s(arith.AddfOp(s(arith.MulfOp(y, scale)), bias))

    return b.map(shape, [t.element_type], inputs, lambda s, args: [body(s, *args)])


def _softmax(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """Over the last axis; another axis is brought there and back."""
    assert isinstance(op, graph.SoftmaxOp)
    axis, last = op.axis.value.data, tensor_type(op.x).get_num_dims() - 1
    swap = list(range(last + 1))
    swap[axis], swap[last] = last, axis
    y = b.insert(te.SoftmaxOp.make([b.transpose(op.x, swap)]))
    return [b.transpose(y, swap)]


def _lrn(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """A window slides over the squares of the channels."""
    assert isinstance(op, graph.LrnOp)
    t, size = tensor_type(op.x), op.size.value.data
    shape, element, rank = t.get_shape(), t.element_type, t.get_num_dims()
    alpha, beta, bias = (v.value.data for v in (op.alpha, op.beta, op.bias))
    before = (size - 1) // 2
    rest = [0] * (rank - 2)
    x = b.pad(op.x, [0, before, *rest], [0, size - 1 - before, *rest], 0)
    channel = AffineDimExpr(1) + AffineDimExpr(rank)
    every = list(range(rank))
    # Read by no one: it says how large a window is.
    extent = b.empty([size], element, [])
    init = b.fill(0, shape, element, [op.x])

    def square(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [s(arith.AddfOp(args[2], s(arith.MulfOp(args[0], args[0]))))]

    pairs = [(x, [0, channel, *every[2:]]), (extent, [rank])]
    (total,) = b.generic(pairs, [(init, every)], rank, 1, square)

    def divide(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        scaled = s(arith.MulfOp(args[1], s.constant(alpha / size, element)))
        base = s(arith.AddfOp(s.constant(bias, element), scaled))
        power = s(math.PowFOp(base, s.constant(beta, element)))
        return s(arith.DivfOp(args[0], power))

    return [b.elementwise(shape, element, [op.x, total], divide)]


RULES: dict[type[GraphOp], Rule] = {
    graph.BatchNormOp: _batch_norm,
    graph.LrnOp: _lrn,
    graph.SoftmaxOp: _softmax,
}
