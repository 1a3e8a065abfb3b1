"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects import graph
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


def _matmul(node: Node) -> Sequence[Value]:
    if min(node.type_of(i).get_num_dims() for i in (0, 1)) < 2:
        node.refuse("operands", "vectors are not supported, only matrices")
    return [node.emit(graph.MatmulOp, node.operand(0), node.operand(1))]


HANDLERS: dict[str, Handler] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
}
