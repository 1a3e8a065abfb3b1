"""The NumPy meaning of the `te` ops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irkit.dialects import te
from irkit.dialects.forest_base import forest_sums
from irkit.dialects.gather_base import gathered, gathered_elements
from irkit.dialects.inference import InferredOp
from irkit.weights import Array


def _argmax(op: te.ArgmaxOp, x: Array) -> Array:
    return x.argmax(axis=-1)


def _softmax(op: te.SoftmaxOp, x: Array) -> Array:
    power = np.exp(x - x.max(axis=-1, keepdims=True))
    total = np.zeros(x.shape[:-1], x.dtype)
    for column in range(x.shape[-1]):
        total = total + power[..., column]
    return power / total[..., None]


def _perfect_forest(
    op: te.PerfectForestOp, x: Array, feature: Array, threshold: Array, nan_left: Array,
    value: Array, output: Array, base: Array,
) -> Array:  # fmt: skip
    depth, compare = op.depth.value.data, np.less if op.comparison.data == "lt" else np.less_equal
    rows = np.arange(len(x))
    total = np.tile(base, (len(x), 1))
    for tree, column in enumerate(output):
        node = np.zeros(len(x), np.int64)
        for _ in range(depth):
            cell = x[rows, feature[tree, node]]
            goes_left = compare(cell, threshold[tree, node])
            goes_left |= np.isnan(cell) & nan_left[tree, node]
            node = 2 * node + np.where(goes_left, 1, 2)
        leaf = value[tree, node - ((1 << depth) - 1)]
        if leaf.shape[1] == 1:
            total[:, column] += leaf[:, 0]
        else:
            total += leaf
    return total


RULES: dict[type[InferredOp], Callable[..., Array | tuple[Array, ...]]] = {
    te.ArgmaxOp: _argmax,
    te.ForestOp: forest_sums,
    te.GatherElementsOp: gathered_elements,
    te.GatherOp: gathered,
    te.PerfectForestOp: _perfect_forest,
    te.SoftmaxOp: _softmax,
}
"""Per op a function of the op and its operands' arrays, as in `irkit.dialects.graph.semantics`."""


def evaluate_te(op: InferredOp, operands: list[Array]) -> list[Array]:
    """The results of a `te` op on arrays of its operands."""
    with np.errstate(all="ignore"):
        result = RULES[type(op)](op, *operands)
    return list(result) if isinstance(result, tuple) else [result]
