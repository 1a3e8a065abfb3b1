"""`pack-forests`: perfect trees for a GPU, 8 bytes a node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects import te
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.forests import perfect_trees
from irkit.dialects.heap_nodes import heap_nodes
from irkit.dialects.packed_nodes import unpacked_nodes
from irkit.dialects.types import tensor_type
from irkit.errors import DeviceError
from irkit.rewriting import Rule, rewrite
from irkit.schedule.devices import device as find_device
from irkit.weights import Array, WeightStore

DEEPEST = 13
"""Levels of a tree: two such are 128 KB."""
MOST_PLACES = 4
"""Times as many places as a forest has leaves: the others are there for nothing."""


@dataclass
class _Repack(Rule):
    weights: WeightStore

    def arrays(self, values: tuple[SSAValue, ...]) -> list[Array] | None:
        """What constants hold; None if one is none."""
        found = [constant_array(v, self.weights) for v in values]
        known = [a for a in found if a is not None]
        return known if len(known) == len(found) else None

    def replace(
        self,
        op: te.PackedForestOp | te.PerfectForestOp,
        trees: tuple[Array, Array, Array],
        value: SSAValue | Array,
        rewriter: PatternRewriter,
    ) -> None:
        """Walk `trees`, of `te.perfect_forest`, with these leaves in place of `op`."""
        made: list[Operation] = [constant(heap_nodes(*trees), self.weights, "nodes")]
        nodes = made[0].results[0]
        nodes.name_hint = "nodes"
        if not isinstance(value, SSAValue):
            made.append(constant(value, self.weights, "value"))
            value = made[-1].results[0]
            value.name_hint = op.value.name_hint
        operands = [op.x, nodes, value, op.output, op.base]
        properties = {"comparison": op.comparison, "depth": op.depth}
        made.append(te.HeapForestOp.make(operands, properties))
        rewriter.replace(op, made, list(made[-1].results))


@dataclass
class PackLevels(_Repack):
    """perfect_forest(x, feature, threshold, nan_left, ...) = heap_forest(x, nodes, ...)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.PerfectForestOp, rewriter: PatternRewriter, /) -> None:
        if tensor_type(op.x).element_type != f32:
            return self.no_match(op, "x is of {}", tensor_type(op.x).element_type)
        arrays = self.arrays((op.feature, op.threshold, op.nan_left))
        if arrays is None:
            return self.no_match(op, "its trees are not known")
        feature, threshold, nan_left = arrays
        self.replace(op, (feature, threshold, nan_left), op.value, rewriter)


@dataclass
class FillTrees(_Repack):
    """packed_forest(x, nodes, ...) = heap_forest(x, nodes, ...), of trees that are nearly perfect"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.PackedForestOp, rewriter: PatternRewriter, /) -> None:
        depth = op.depth.value.data
        if tensor_type(op.x).element_type != f32:
            return self.no_match(op, "x is of {}", tensor_type(op.x).element_type)
        if depth > DEEPEST:
            return self.no_match(op, "its trees have {} levels", depth)
        arrays = self.arrays((op.nodes, op.value, op.root))
        if arrays is None:
            return self.no_match(op, "its trees are not known")
        nodes, value, root = arrays
        feature, threshold, left, right, nan_left = unpacked_nodes(nodes, np.dtype(np.float32))
        ends = _ends(left, right)
        places = len(root) << depth
        if places > MOST_PLACES * int(ends.sum()):
            return self.no_match(op, "{} leaves would take {} places", int(ends.sum()), places)
        own = np.arange(len(left), dtype=left.dtype)
        left, right = np.where(ends, own, left), np.where(ends, own, right)
        trees = perfect_trees(feature, threshold, left, right, nan_left, value, root, depth)
        self.replace(op, trees[:3], trees[3], rewriter)


def _ends(left: Array, right: Array) -> Array:
    """Which packed nodes are leaves: the right child of one is itself."""
    return right == np.arange(len(right))


@dataclass(frozen=True)
class PackForests(ModulePass):
    """Have trees of one depth walked by nodes of 8 bytes where the `device` is a GPU.

    There a node is one read, and a group of trees goes to shared memory as it lies. Trees of at most 13
    levels that are nearly perfect become perfect for it. No value changes: what is compared, and the order of
    sums, stay. Thresholds have to be float32, as the input is.

    ```mlir
    %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base
        {comparison = "le", depth = 2 : i64}
      : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>,
         tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
    ```
    becomes
    ```mlir
    %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = 2 : i64}
      : (tensor<?x4xf32>, tensor<5x4x2xi32>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>)
      -> tensor<?x3xf64>
    ```
    """

    name = "pack-forests"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.device:
            return
        try:
            device = find_device(self.device)
        except DeviceError as error:
            raise PassFailedException(str(error)) from None
        if device.kind == "cuda":
            weights = weights_of(ctx)
            rewrite(op, [PackLevels(weights), FillTrees(weights)])
