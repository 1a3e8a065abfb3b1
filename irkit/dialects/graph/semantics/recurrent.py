"""Meaning of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.recurrent import LayerOp, LstmBase, RecurrentOp
from irkit.dialects.graph.semantics.elementwise import relu, sigmoid
from irkit.dialects.graph.semantics.rule import Rules, factors
from irkit.weights import Array


def _softplus(x: Array) -> Array:
    # exp of a large number would overflow.
    return relu(x) + np.log(x.dtype.type(1) + np.exp(-np.abs(x)))


def _softsign(x: Array) -> Array:
    return x / (x.dtype.type(1) + np.abs(x))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": relu,
    "sigmoid": sigmoid,
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": np.tanh,
}

Step = Callable[..., tuple[Array, ...]]
"""From an op, x, the states and the weights to the next states."""


def _product(op: RecurrentOp, x: Array, weights: Array) -> Array:
    x, weights = factors(op, x, weights)
    return x @ weights.T


def _lstm_step(
    op: LstmBase, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array, p: Array | None = None
) -> tuple[Array, ...]:
    inner, new, outer = (FUNCTIONS[n] for n in op.functions)
    i, o, f, g = np.split(_product(op, x, w) + _product(op, h, r) + b, 4, axis=1)
    of_i, of_o, of_f = (x.dtype.type(0),) * 3 if p is None else np.split(p, 3)
    if p is not None:
        i, f = i + of_i * c, f + of_f * c
    c = inner(f) * c + inner(i) * new(g)
    if p is not None:
        o = o + of_o * c
    return inner(o) * outer(c), c


def _gru_step(
    op: graph.GruOp | graph.GruCellOp, x: Array, h: Array, w: Array, r: Array, b: Array
) -> tuple[Array, ...]:
    inner, new = (FUNCTIONS[n] for n in op.functions)
    hidden = h.shape[1]
    of_input, of_state = _product(op, x, w), _product(op, h, r[: 2 * hidden])
    b_z, b_r, b_x, b_h = np.split(b, 4)
    x_z, x_r, x_n = np.split(of_input, 3, axis=1)
    h_z, h_r = np.split(of_state, 2, axis=1)
    update, reset = inner(x_z + h_z + b_z), inner(x_r + h_r + b_r)
    last = r[2 * hidden :]
    if op.linear_before_reset.value.data:
        n = new(x_n + b_x + reset * (_product(op, h, last) + b_h))
    else:
        n = new(x_n + b_x + _product(op, reset * h, last) + b_h)
    return ((x.dtype.type(1) - update) * n + update * h,)


def _rnn_step(
    op: RecurrentOp, x: Array, h: Array, w: Array, r: Array, b: Array
) -> tuple[Array, ...]:
    (function,) = (FUNCTIONS[n] for n in op.functions)
    return (function(_product(op, x, w) + _product(op, h, r) + b),)


def _layer(step: Step) -> Callable[..., tuple[Array, ...]]:
    def layer(op: LayerOp, x: Array, *operands: Array) -> tuple[Array, ...]:
        states, weights = operands[: op.STATES], operands[op.STATES :]
        y = np.empty((len(x), *states[0].shape), dtype=x.dtype)
        for number in op.order:
            states = step(op, x[number], *states, *weights)
            y[number] = states[0]
        return (y, *states)

    return layer


RULES: Rules = {
    graph.GruCellOp: _gru_step,
    graph.GruOp: _layer(_gru_step),
    graph.LstmCellOp: _lstm_step,
    graph.LstmOp: _layer(_lstm_step),
    graph.RnnCellOp: _rnn_step,
    graph.RnnOp: _layer(_rnn_step),
}
