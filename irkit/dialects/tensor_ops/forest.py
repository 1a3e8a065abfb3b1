"""`te.forest`, `te.heap_forest`, `te.packed_forest` and `te.perfect_forest`: walks over trees, row by row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from irkit.dialects import te
from irkit.dialects.forest_base import Walked, forest_sums
from irkit.dialects.heap_nodes import unpacked_heap
from irkit.dialects.packed_nodes import unpacked_nodes
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.weights import Array

AnyForest = TypeVar(
    "AnyForest", te.ForestOp, te.HeapForestOp, te.PackedForestOp, te.PerfectForestOp
)


class _Walk(TensorOpModel[AnyForest]):
    """A row of the result hangs on that row of x, and on all of the trees."""

    def kind(self, op: AnyForest) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: AnyForest, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [self._sums(op, operands)]

    @abstractmethod
    def _sums(self, op: AnyForest, operands: list[Array]) -> Array:
        """What the trees add up to, per row."""

    def operand_boxes(
        self, op: AnyForest, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        x, *trees = op.operands
        return [(box[0], extents.whole(x)[1]), *map(extents.whole, trees)]


class Forest(_Walk[te.ForestOp]):
    """Node by node."""

    family = "forest"

    def _sums(self, op: te.ForestOp, operands: list[Array]) -> Array:
        return forest_sums(op, *operands)


class PackedForest(_Walk[te.PackedForestOp]):
    """Node by node, of 16 bytes each."""

    family = "packed_forest"

    def _sums(self, op: te.PackedForestOp, operands: list[Array]) -> Array:
        x, nodes, value, root, output, base = operands
        return forest_sums(op, x, *unpacked_nodes(nodes, x.dtype), value, root, output, base)


class PerfectForest(_Walk[te.PerfectForestOp]):
    """Level by level."""

    family = "perfect_forest"

    def _sums(self, op: te.PerfectForestOp, operands: list[Array]) -> Array:
        return _perfect_sums(op, *operands)


class HeapForest(_Walk[te.HeapForestOp]):
    """Level by level, of nodes of 8 bytes."""

    family = "heap_forest"

    def _sums(self, op: te.HeapForestOp, operands: list[Array]) -> Array:
        x, nodes, value, output, base = operands
        return _perfect_sums(op, x, *unpacked_heap(nodes), value, output, base)


def _perfect_sums(
    op: Walked, x: Array, feature: Array, threshold: Array, nan_left: Array, value: Array,
    output: Array, base: Array,
) -> Array:  # fmt: skip
    compare = np.less if op.comparison.data == "lt" else np.less_equal
    depth, rows = op.depth.value.data, np.arange(len(x))
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
