"""Products with matrices of 4-bit integers: the same op at the tensor level, on rows of known number."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule


def _nibble_matmul(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.NibbleMatmulOp)
    shape = tensor_type(op.x).get_shape()
    if DYNAMIC in shape:
        raise UnsupportedError(f"'{op.name}' of an open number of rows: run unpack-nibbles first")
    x = b.reshape(op.x, (math.prod(shape[:-1]), shape[-1]))
    y = b.insert(te.NibbleMatmulOp.make([x, *op.operands[1:]], op.properties))
    return [b.reshape(y, (*shape[:-1], op.width))]


RULES: dict[type[GraphOp], Rule] = {graph.NibbleMatmulOp: _nibble_matmul}
