"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import tensor_type
from irkit.frontends.onnx.node import Handler, Node, Value


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


def product(node: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    """MatMul: a vector on the left is a row, one on the right a column, and neither is left in the result."""
    left, right = (list(tensor_type(v).get_shape()) for v in (a, b))
    if len(left) == 1:
        a = node.emit(graph.ReshapeOp, a, shape=[1, *left])
    if len(right) == 1:
        b = node.emit(graph.ReshapeOp, b, shape=[*right, 1])
    y = node.emit(graph.MatmulOp, a, b)
    shape = list(tensor_type(y).get_shape())
    if len(right) == 1:
        shape.pop()
    if len(left) == 1:
        shape.pop(-1 if len(right) == 1 else -2)
    return node.emit(graph.ReshapeOp, y, shape=shape) if 1 in (len(left), len(right)) else y


def _matmul(node: Node) -> Sequence[Value]:
    return [product(node, node.operand(0), node.operand(1))]


HANDLERS: dict[str, Handler] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
}
