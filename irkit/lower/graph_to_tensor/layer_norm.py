"""Layer normalisation: one op of the tensor level too."""

from __future__ import annotations

from xdsl.ir import SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule


def _layer_norm(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    return [b.insert(te.LayerNormOp.make(op.operands, op.properties))]


RULES: dict[type[GraphOp], Rule] = {graph.LayerNormOp: _layer_norm}
