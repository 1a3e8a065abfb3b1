"""Meaning of recurrent layers."""

from __future__ import annotations

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import sigmoid
from irkit.dialects.graph.semantics.rule import Rules
from irkit.weights import Array


def _cell(x: Array, h: Array, c: Array, w: Array, r: Array, b: Array) -> tuple[Array, Array]:
    i, o, f, g = np.split(x @ w.T + h @ r.T + b, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def _lstm_cell(op: graph.LstmCellOp, *operands: Array) -> tuple[Array, ...]:
    return _cell(*operands)


def _lstm(
    op: graph.LstmOp, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array
) -> tuple[Array, ...]:
    y = np.empty((len(x), *h.shape), dtype=x.dtype)
    for step, row in enumerate(x):
        h, c = _cell(row, h, c, w, r, b)
        y[step] = h
    return y, h, c


RULES: Rules = {
    graph.LstmCellOp: _lstm_cell,
    graph.LstmOp: _lstm,
}
