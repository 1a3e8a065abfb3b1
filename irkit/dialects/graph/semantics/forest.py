"""Meaning of forests."""

from __future__ import annotations

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import PREDICATES
from irkit.dialects.graph.semantics.rule import Rules
from irkit.weights import Array


def _forest(
    op: graph.ForestOp, x: Array, feature: Array, threshold: Array, left: Array, right: Array,
    nan_left: Array, value: Array, root: Array, output: Array, base: Array,
) -> Array:  # fmt: skip
    compare = PREDICATES[op.comparison.data]
    rows = np.arange(len(x))
    total = np.tile(base, (len(x), 1))
    # A leaf may carry any feature number; it goes back to itself whatever is compared.
    feature = np.where(left == right, 0, feature)
    for start, column in zip(root, output, strict=True):
        node = np.full(len(x), start)
        for _ in range(op.depth.value.data):
            cell = x[rows, feature[node]]
            goes_left = compare(cell, threshold[node]) | (np.isnan(cell) & nan_left[node])
            node = np.where(goes_left, left[node], right[node])
        if value.shape[1] == 1:
            total[:, column] += value[node, 0]
        else:
            total += value[node]
    return total


RULES: Rules = {
    graph.ForestOp: _forest,
}
