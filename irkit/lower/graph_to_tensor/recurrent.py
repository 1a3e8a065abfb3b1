"""LSTM cells: two contractions that accumulate, then one elementwise op over batch and units."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import is_float, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import ZERO, Index, Scalars, TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule, sigmoid


def _lstm_cell(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """Loops are (batch, unit, gate, k): the gates of a unit lie side by side."""
    assert isinstance(op, graph.LstmCellOp)
    t = tensor_type(op.h)
    if not is_float(t.element_type):
        raise UnsupportedError(f"'{op.name}' on elements of {t.element_type}")
    batch, hidden = t.get_shape()
    w, r, bias = (_by_unit(b, v, hidden) for v in (op.w, op.r, op.b))
    like = [op.x, op.h]
    row, unit, gate, k = range(4)
    bias_index: Index = (ZERO if hidden == 1 else unit, gate)
    gates = b.broadcast(bias, bias_index, (batch, hidden, 4), like)
    for x, weights in ((op.x, w), (op.h, r)):
        gates = b.contract((x, (row, k)), (weights, (unit, gate, k)), (gates, (row, unit, gate)), 1)
    numbers = [AffineConstantExpr(g) for g in range(4)]
    inputs: list[tuple[SSAValue, Index]] = [(gates, (row, unit, g)) for g in numbers]
    element = t.element_type
    return b.map((batch, hidden), [element] * 2, [*inputs, (op.c, (row, unit))], _update, like)


def _by_unit(b: TensorBuilder, weights: SSAValue, hidden: int) -> SSAValue:
    """4·hidden×… weights, gate by gate, as hidden×4×…, unit by unit."""
    rest = tensor_type(weights).get_shape()[1:]
    shape, order = (4, hidden, *rest), [1, 0, *range(2, 2 + len(rest))]
    known = b.packed(weights, "by unit", lambda a: a.reshape(shape).transpose(order))
    return b.transpose(b.reshape(weights, shape), order) if known is None else known


def _update(s: Scalars, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """h' and c' of one unit, from the sums of its gates (input, output, forget, cell) and c."""
    i, o, f, g, c = arguments
    kept = s(arith.MulfOp(sigmoid(s, f), c))
    new = s(arith.MulfOp(sigmoid(s, i), s(math.TanhOp(g))))
    c_next = s(arith.AddfOp(kept, new))
    return [s(arith.MulfOp(sigmoid(s, o), s(math.TanhOp(c_next)))), c_next]


RULES: dict[type[GraphOp], Rule] = {graph.LstmCellOp: _lstm_cell}
