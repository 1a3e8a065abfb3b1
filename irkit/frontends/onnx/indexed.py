"""Inputs of a model that are indices, as of words: the host looks whether they are within what they index."""

from __future__ import annotations

from xdsl.ir import BlockArgument, SSAValue

from irkit.dialects import graph
from irkit.dialects.types import is_integer, tensor_type
from irkit.frontends.module import GraphBuilder

_MOVES = (graph.CastOp, graph.ReshapeOp, graph.ExpandOp, graph.TransposeOp)
"""Ops whose results have their operand's numbers."""


def note_indices(builder: GraphBuilder, value: SSAValue, extent: int) -> None:
    """That `value` indexes an axis of an extent: where it is an input, the host is to look at it."""
    while isinstance(value.owner, _MOVES):
        value = value.owner.operands[0]
    if not is_integer(tensor_type(value).element_type):
        return
    if isinstance(value, BlockArgument) and value in builder.inputs:
        known = builder.indexed.get(value.index, extent)
        builder.indexed[value.index] = min(extent, known)


def indexed_inputs(builder: GraphBuilder) -> dict[str, int]:
    """The inputs that are indices, and the smallest extent of what each indexes."""
    return {builder.names[n]: extent for n, extent in sorted(builder.indexed.items())}
