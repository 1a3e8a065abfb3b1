"""Cells: contractions over rows that accumulate, then one elementwise op over batch and units."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import tensor_type
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule, sigmoid
from irkit.lower.graph_to_tensor.nests import ZERO, Index
from irkit.lower.graph_to_tensor.scalars import Scalars

Function = Callable[[Scalars, SSAValue], SSAValue]


def _relu(s: Scalars, x: SSAValue) -> SSAValue:
    return s(arith.MaximumfOp(x, s.constant(0.0, x.type)))


def _softplus(s: Scalars, x: SSAValue) -> SSAValue:
    power = s(math.ExpOp(s(arith.NegfOp(s(math.AbsFOp(x))))))
    rest = s(math.LogOp(s(arith.AddfOp(s.constant(1.0, x.type), power))))
    return s(arith.AddfOp(_relu(s, x), rest))


def _softsign(s: Scalars, x: SSAValue) -> SSAValue:
    size = s(arith.AddfOp(s.constant(1.0, x.type), s(math.AbsFOp(x))))
    return s(arith.DivfOp(x, size))


_FUNCTIONS: dict[str, Function] = {
    "relu": _relu,
    "sigmoid": sigmoid,
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": lambda s, x: s(math.TanhOp(x)),
}
ROW, UNIT, GATE, K = range(4)


def _by_unit(b: TensorBuilder, weights: SSAValue, hidden: int, gates: int) -> SSAValue:
    """gates·hidden×… weights, gate by gate, as hidden×gates×…, unit by unit."""
    rest = tensor_type(weights).get_shape()[1:]
    shape, order = (gates, hidden, *rest), [1, 0, *range(2, 2 + len(rest))]
    known = b.packed(weights, ("by unit", gates), lambda a: a.reshape(shape).transpose(order))
    return b.transpose(b.reshape(weights, shape), order) if known is None else known


def _part(b: TensorBuilder, weights: SSAValue, first: int, count: int) -> SSAValue:
    """Rows first..first + count of the weights."""
    known = b.packed(weights, ("rows", first, count), lambda a: a[first : first + count])
    if known is not None:
        return known
    shape = (count, *tensor_type(weights).get_shape()[1:])
    return b.cut(weights, [first, *(0,) * (len(shape) - 1)], shape)


def _gates(
    b: TensorBuilder, bias: SSAValue | None, terms: Sequence[tuple[SSAValue, SSAValue]], gates: int
) -> SSAValue:
    """batch×hidden×gates sums: the bias and each state times its weights (gates·hidden×k)."""
    like = [x for x, _ in terms]
    t = tensor_type(terms[0][0])
    batch, hidden = t.get_shape()[0], tensor_type(terms[0][1]).get_shape()[0] // gates
    shape = (batch, hidden, gates)
    pairs = [(x, _by_unit(b, weights, hidden, gates)) for x, weights in terms]
    if bias is None:
        total = b.fill(0, shape, t.element_type, like)
    else:
        index: Index = (ZERO if hidden == 1 else UNIT, ZERO if gates == 1 else GATE)
        total = b.broadcast(_by_unit(b, bias, hidden, gates), index, shape, like)
    for x, w in pairs:
        total = b.contract((x, (ROW, K)), (w, (UNIT, GATE, K)), (total, (ROW, UNIT, GATE)), 1)
    return total


def _at(gates: SSAValue, count: int) -> list[tuple[SSAValue, Index]]:
    """Each gate of a unit, as inputs of an elementwise op."""
    return [(gates, (ROW, UNIT, AffineConstantExpr(g))) for g in range(count)]


def _one_per_unit(
    b: TensorBuilder, p: SSAValue, parts: int, hidden: int
) -> list[tuple[SSAValue, Index]]:
    index: Index = (ZERO if hidden == 1 else UNIT,)
    return [(_part(b, p, n * hidden, hidden), index) for n in range(parts)]


def _lstm_cell(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """Loops are (batch, unit, gate, k): the gates of a unit lie side by side."""
    assert isinstance(op, graph.LstmCellOp)
    batch, hidden = tensor_type(op.h).get_shape()
    element = tensor_type(op.h).element_type
    gates = _gates(b, op.b, [(op.x, op.w), (op.h, op.r)], 4)
    inputs = [*_at(gates, 4), (op.c, (ROW, UNIT))]
    if op.p is not None:
        inputs += _one_per_unit(b, op.p, 3, hidden)
    inner, new, outer = (_FUNCTIONS[n] for n in op.functions)

    def update(s: Scalars, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        i, o, f, g, c, *peepholes = arguments
        if peepholes:
            i, f = _seen(s, i, peepholes[0], c), _seen(s, f, peepholes[2], c)
        kept = s(arith.MulfOp(inner(s, f), c))
        c_next = s(arith.AddfOp(kept, s(arith.MulfOp(inner(s, i), new(s, g)))))
        if peepholes:
            o = _seen(s, o, peepholes[1], c_next)
        return [s(arith.MulfOp(inner(s, o), outer(s, c_next))), c_next]

    return b.map((batch, hidden), [element] * 2, inputs, update, [op.x, op.h])


def _seen(s: Scalars, gate: SSAValue, weight: SSAValue, c: SSAValue) -> SSAValue:
    return s(arith.AddfOp(gate, s(arith.MulfOp(weight, c))))


def _mixed(s: Scalars, update: SSAValue, new: SSAValue, h: SSAValue) -> SSAValue:
    """(1 - update) * new + update * h"""
    rest = s(arith.SubfOp(s.constant(1.0, update.type), update))
    return s(arith.AddfOp(s(arith.MulfOp(rest, new)), s(arith.MulfOp(update, h))))


def _gru_cell(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.GruCellOp)
    if op.linear_before_reset.value.data:
        return _linear_before_reset(b, op)
    return _reset_first(b, op)


def _reset_first(b: TensorBuilder, op: graph.GruCellOp) -> list[SSAValue]:
    """Two chains: z and r, which give r * h, and then what reads that."""
    batch, hidden = tensor_type(op.h).get_shape()
    element, like, here = tensor_type(op.h).element_type, [op.x, op.h], (ROW, UNIT)
    inner, new = (_FUNCTIONS[n] for n in op.functions)
    w, w_n = _part(b, op.w, 0, 2 * hidden), _part(b, op.w, 2 * hidden, hidden)
    r, r_n = _part(b, op.r, 0, 2 * hidden), _part(b, op.r, 2 * hidden, hidden)
    gates = _gates(b, _part(b, op.b, 0, 2 * hidden), [(op.x, w), (op.h, r)], 2)

    def reset(s: Scalars, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        z, r, h = arguments
        return [inner(s, z), s(arith.MulfOp(inner(s, r), h))]

    shape = (batch, hidden)
    inputs = [*_at(gates, 2), (op.h, here)]
    update, kept = b.map(shape, [element] * 2, inputs, reset, like)
    hidden_gate = _gates(b, None, [(op.x, w_n), (kept, r_n)], 1)

    def step(s: Scalars, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        n, z, h, b_x, b_h = arguments
        total = s(arith.AddfOp(s(arith.AddfOp(n, b_x)), b_h))
        return [_mixed(s, z, new(s, total), h)]

    biases = _one_per_unit(b, _part(b, op.b, 2 * hidden, 2 * hidden), 2, hidden)
    inputs = [*_at(hidden_gate, 1), (update, here), (op.h, here), *biases]
    return b.map(shape, [element], inputs, step, like)


def _linear_before_reset(b: TensorBuilder, op: graph.GruCellOp) -> list[SSAValue]:
    """The products of x come first, for they wait for no state; then one chain of the state's."""
    batch, hidden = tensor_type(op.h).get_shape()
    element, like, here = tensor_type(op.h).element_type, [op.x, op.h], (ROW, UNIT)
    inner, new = (_FUNCTIONS[n] for n in op.functions)
    units = 3 * hidden
    first: Index = (ZERO if units == 1 else UNIT,)
    init = b.broadcast(_part(b, op.b, 0, units), first, (batch, units), like)
    of_input = b.contract((op.x, (ROW, 2)), (op.w, (UNIT, 2)), (init, (ROW, UNIT)), 1)
    of_input = b.reshape(of_input, (batch, 3, hidden))
    gates = _gates(b, None, [(op.h, op.r)], 3)
    sums: list[tuple[SSAValue, Index]] = [
        (of_input, (ROW, AffineConstantExpr(g), ZERO if hidden == 1 else UNIT)) for g in range(3)
    ]

    def step(s: Scalars, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        h_z, h_r, h_n, x_z, x_r, x_n, b_h, h = arguments
        update = inner(s, s(arith.AddfOp(h_z, x_z)))
        reset = inner(s, s(arith.AddfOp(h_r, x_r)))
        state = s(arith.MulfOp(reset, s(arith.AddfOp(h_n, b_h))))
        return [_mixed(s, update, new(s, s(arith.AddfOp(x_n, state))), h)]

    b_h = _one_per_unit(b, _part(b, op.b, units, hidden), 1, hidden)
    inputs = [*_at(gates, 3), *sums, *b_h, (op.h, here)]
    return b.map((batch, hidden), [element], inputs, step, like)


def _rnn_cell(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.RnnCellOp)
    t = tensor_type(op.h)
    (function,) = (_FUNCTIONS[n] for n in op.functions)
    gates = _gates(b, op.b, [(op.x, op.w), (op.h, op.r)], 1)
    inputs = _at(gates, 1)
    like = [op.x, op.h]
    return b.map(t.get_shape(), [t.element_type], inputs, lambda s, v: [function(s, v[0])], like)


RULES: dict[type[GraphOp], Rule] = {
    graph.GruCellOp: _gru_cell,
    graph.LstmCellOp: _lstm_cell,
    graph.RnnCellOp: _rnn_cell,
}
