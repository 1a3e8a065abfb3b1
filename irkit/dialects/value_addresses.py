"""Whether where an rOperator reads and writes hangs on values that it reads."""

from __future__ import annotations

from xdsl.dialects import arith, linalg, math, tensor
from xdsl.ir import Block, Operation

from irkit.dialects import te

_PLACED = {
    linalg.ops.GenericOp,
    linalg.ops.FillOp,
    te.ArgmaxOp,
    te.GemvtOp,
    te.LayerNormOp,
    te.NibbleMatmulOp,
    te.PackOp,
    te.PrepackedOp,
    te.RowwiseOp,
    te.SoftmaxOp,
    tensor.CastOp,
    tensor.CollapseShapeOp,
    tensor.ConcatOp,
    tensor.DimOp,
    tensor.EmptyOp,
    tensor.ExpandShapeOp,
    tensor.PadOp,
    tensor.SplatOp,
}
"""Ops whose every element is at a place that shapes and loops alone say. Others may be like them: a slice's
begin may be computed, a forest's walk goes from node to node."""
_SCALARS = {
    *arith.Arith.operations,
    *math.Math.operations,
    linalg.ops.YieldOp,
    linalg.ops.IndexOp,
    te.RowReduceOp,
    te.YieldOp,
}


def follows_values(block: Block) -> bool:
    """Of an rOperator's body; true, too, where nobody has said that it does not."""
    *body, _ = block.ops
    return not all((type(op) in _PLACED and _of_scalars(op)) or type(op) in _SCALARS for op in body)


def _of_scalars(op: Operation) -> bool:
    return all(inner is op or type(inner) in _SCALARS for inner in op.walk())
