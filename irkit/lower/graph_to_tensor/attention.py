"""Attention: one op of the tensor level too."""

from __future__ import annotations

from xdsl.ir import SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.precision import inherit
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule


def _attention(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    made = te.AttentionOp.make(op.operands, op.properties)
    inherit(made, op)
    return [b.insert(made)]


def _query_gradient(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    made = te.AttentionQueryGradientOp.make(op.operands, op.properties)
    inherit(made, op)
    return [b.insert(made)]


def _key_gradient(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    made = te.AttentionKeyGradientOp.make(op.operands, op.properties)
    inherit(made, op)
    return [b.insert(made)]


RULES: dict[type[GraphOp], Rule] = {
    graph.AttentionKeyGradientOp: _key_gradient,
    graph.AttentionOp: _attention,
    graph.AttentionQueryGradientOp: _query_gradient,
}
