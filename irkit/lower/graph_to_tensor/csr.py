"""Rows of a CSR matrix: the same ops at the tensor level."""

from __future__ import annotations

from xdsl.ir import SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule


def _dense(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    return [b.insert(te.CsrDenseOp.make(op.operands, op.properties))]


def _matmul(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    return [b.insert(te.CsrMatmulOp.make(op.operands, op.properties))]


def _reduce(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    return [b.insert(te.CsrReduceOp.make(op.operands, op.properties))]


RULES: dict[type[GraphOp], Rule] = {
    graph.CsrDenseOp: _dense,
    graph.CsrMatmulOp: _matmul,
    graph.CsrReduceOp: _reduce,
}
