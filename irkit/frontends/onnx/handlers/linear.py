"""Matrix products, batch normalisation and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC
from irkit.frontends.onnx.node import Handler, Node, Value


def _batch_normalization(node: Node) -> Sequence[Value]:
    node.ignore("momentum")  # used in training only
    node.require("training_mode", 0)
    epsilon = float(node.attribute("epsilon", 1e-5))
    return [node.emit(graph.BatchNormOp, *node.operands(), epsilon=epsilon)]


def _gemm(node: Node) -> Sequence[Value]:
    operands = [node.operand(i) for i in range(3) if node.given(i) is not None]
    y = node.emit(
        graph.GemmOp,
        *operands,
        trans_a=bool(node.attribute("transA", 0)),
        trans_b=bool(node.attribute("transB", 0)),
        alpha=float(node.attribute("alpha", 1.0)),
        beta=float(node.attribute("beta", 1.0)),
    )
    return [y]


def _matmul(node: Node) -> Sequence[Value]:
    if min(node.type_of(i).get_num_dims() for i in (0, 1)) < 2:
        node.refuse("operands", "vectors are not supported, only matrices")
    return [node.emit(graph.MatmulOp, node.operand(0), node.operand(1))]


def _softmax(node: Node) -> Sequence[Value]:
    x, shape = node.operand(0), node.type_of(0).get_shape()
    rank = len(shape)
    axis = node.axis(node.attribute("axis", -1 if node.opset >= 13 else 1), rank)
    if axis == 0 and shape[0] == DYNAMIC:
        node.refuse("axis = 0", "it mixes the rows of a dynamic batch")
    if node.opset >= 13 or axis == rank - 1:
        return [node.emit(graph.SoftmaxOp, x, axis=axis)]
    # Up to operator set 12, all dimensions from the axis on count as one.
    flat = [*shape[:axis], math.prod(shape[axis:])]
    y = node.emit(graph.ReshapeOp, x, shape=flat)
    y = node.emit(graph.SoftmaxOp, y, axis=len(flat) - 1)
    return [node.emit(graph.ReshapeOp, y, shape=shape)]


HANDLERS: dict[str, Handler] = {
    "BatchNormalization": _batch_normalization,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Softmax": _softmax,
}
