"""Gradients of recurrent layers: those of what they are composed of.

A layer is its steps, one after another, and a cell its products and functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import Builder, Composed, Rules
from irkit.dialects.graph.recurrent import CellOp, GruBase, LayerOp, RecurrentOp


def _softplus(o: Builder, x: SSAValue) -> SSAValue:
    # By cases, of which each is smooth at 0: relu has no slope there.
    positive = o.above(x, 0)
    apart = o(graph.ExpOp, o.where(positive, o(graph.NegOp, x), x))
    return o.add(o.where(positive, x, o.like(0, x)), o(graph.Log1pOp, apart))


def _softsign(o: Builder, x: SSAValue) -> SSAValue:
    return o.div(x, o.add(o.like(1, x), o(graph.AbsOp, x)))


FUNCTIONS: dict[str, Callable[[Builder, SSAValue], SSAValue]] = {
    "relu": lambda o, x: o(graph.ReluOp, x),
    "sigmoid": lambda o, x: o(graph.SigmoidOp, x),
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": lambda o, x: o(graph.TanhOp, x),
}


def _product(o: Builder, x: SSAValue, weights: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    """x @ weightsᵀ + bias"""
    operands = [x, weights] if bias is None else [x, weights, bias]
    return o(graph.GemmOp, *operands, trans_a=False, trans_b=True, alpha=1.0, beta=1.0)


def _parts(o: Builder, x: SSAValue, count: int) -> list[SSAValue]:
    """Equal parts of the last dimension."""
    axis = len(o.shape(x)) - 1
    size = o.shape(x)[axis] // count
    return [o.cut(x, axis, n * size, size) for n in range(count)]


def lstm_cell(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """One step of an LSTM."""
    assert isinstance(op, graph.LstmCellOp)
    inner, new, outer = (FUNCTIONS[n] for n in op.functions)
    gates = o.add(_product(o, op.x, op.w, op.b), _product(o, op.h, op.r))
    i, out, forget, g = _parts(o, gates, 4)
    peep = None if op.p is None else _parts(o, op.p, 3)
    if peep is not None:
        i, forget = o.add(i, o.mul(peep[0], op.c)), o.add(forget, o.mul(peep[2], op.c))
    c = o.add(o.mul(inner(o, forget), op.c), o.mul(inner(o, i), new(o, g)))
    if peep is not None:
        out = o.add(out, o.mul(peep[1], c))
    return [o.mul(inner(o, out), outer(o, c)), c]


def gru_cell(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """One step of a GRU."""
    assert isinstance(op, GruBase)
    inner, new = (FUNCTIONS[n] for n in op.functions)
    hidden = o.shape(op.h)[1]
    b_z, b_r, b_x, b_h = _parts(o, op.b, 4)
    x_z, x_r, x_n = _parts(o, _product(o, op.x, op.w), 3)
    first, last = o.cut(op.r, 0, 0, 2 * hidden), o.cut(op.r, 0, 2 * hidden, hidden)
    h_z, h_r = _parts(o, _product(o, op.h, first), 2)
    update = inner(o, o.add(o.add(x_z, h_z), b_z))
    reset = inner(o, o.add(o.add(x_r, h_r), b_r))
    if op.linear_before_reset.value.data:
        state = o.mul(reset, _product(o, op.h, last, b_h))
    else:
        state = _product(o, o.mul(reset, op.h), last, b_h)
    n = new(o, o.add(o.add(x_n, b_x), state))
    kept = o.mul(o.sub(o.like(1, update), update), n)
    return [o.add(kept, o.mul(update, op.h))]


def rnn_cell(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """One step of a plain recurrent layer."""
    assert isinstance(op, RecurrentOp)
    (function,) = (FUNCTIONS[n] for n in op.functions)
    return [function(o, o.add(_product(o, op.x, op.w, op.b), _product(o, op.h, op.r)))]


def layer(cell: type[CellOp]) -> Composed:
    """A layer as cells, one a step."""

    def expand(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
        assert isinstance(op, LayerOp)
        props = {n: p for n, p in op.properties.items() if n != "reverse"}
        states, rows = list(op.initial), dict[int, SSAValue]()
        _, batch, inputs = o.shape(op.x)
        for step in op.order:
            x = o.reshape(o.cut(op.x, 0, step, 1), [batch, inputs])
            states = list(o.make(cell, x, *states, *op.parameters, **props))
            rows[step] = o.reshape(states[0], [1, *o.shape(states[0])])
        if not rows:
            whole = o.constant(np.zeros(o.shape(op.results[0]), o.dtype(op.results[0])))
        else:
            whole = o(graph.ConcatOp, *(rows[n] for n in sorted(rows)), axis=0)
        return [whole, *states]

    return Composed(expand)


RULES: Rules = {
    graph.GruCellOp: Composed(gru_cell),
    graph.GruOp: layer(graph.GruCellOp),
    graph.LstmCellOp: Composed(lstm_cell),
    graph.LstmOp: layer(graph.LstmCellOp),
    graph.RnnCellOp: Composed(rnn_cell),
    graph.RnnOp: layer(graph.RnnCellOp),
}
