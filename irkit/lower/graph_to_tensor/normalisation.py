"""Softmax and batch normalisation."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import is_float, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import ZERO, Scalars, TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule


def _batch_norm(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.BatchNormOp)
    t = tensor_type(op.x)
    if not is_float(t.element_type):
        raise UnsupportedError(f"'{op.name}' on elements of {t.element_type}")
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


RULES: dict[type[GraphOp], Rule] = {graph.BatchNormOp: _batch_norm, graph.SoftmaxOp: _softmax}
