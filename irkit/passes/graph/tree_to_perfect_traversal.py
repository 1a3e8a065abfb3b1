"""`tree-to-perfect-traversal`: a forest padded to perfect trees, level by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from irkit.dialects.forests import perfect_trees
from irkit.dialects.graph import AddOp, GatherElementsOp, WhereOp
from irkit.passes.graph.tree_programs import ForestArrays, Ops, carry_out

DEEPEST = 12


def _program(ops: Ops, f: ForestArrays) -> SSAValue:
    packed = perfect_trees(
        f.feature, f.threshold, f.left, f.right, f.nan_left, f.value, f.root, depth=f.depth
    )
    feature, threshold, nan_left, value = packed
    first = np.arange(f.trees, dtype=np.int64)
    node = ops.constant(first, "first")
    for level in range(f.depth):
        # Node i of this level, tree t, is entry t * 2^level + i of the level's tables.
        part = slice((1 << level) - 1, (2 << level) - 1)
        tables = {"feature": feature.astype(np.int64), "threshold": threshold, "nan_left": nan_left}
        flat = {n: ops.constant(a[:, part].reshape(-1), n) for n, a in tables.items()}
        if level == 0:
            here, x = flat, ops.gather(ops.x, flat["feature"], 1)
        else:
            here = {n: ops.gather(table, node, 0) for n, table in flat.items()}
            x = ops(GatherElementsOp, ops.x, here["feature"], axis=IntegerAttr(1, i64))
        left = ops.goes_left(x, here["threshold"], here["nan_left"], f)
        twice = ops(AddOp, node, node)
        after = ops(AddOp, twice, ops.constant(np.ones(1, np.int64), "one"))
        node = ops(WhereOp, left, twice, after)
    leaves = value.reshape(-1, value.shape[-1])
    return ops.total(ops.gather(ops.constant(leaves, "value"), node, 0), f)


@dataclass(frozen=True)
class TreeToPerfectTraversal(ModulePass):
    """Rewrite forests of strategy "perfect_traversal" (Hummingbird's PerfectTreeTraversal).

    Trees are padded to perfect ones of the same depth: a level's nodes are found by doubling, with
    no child pointers. Memory grows with 2^depth: forests deeper than 12 are left alone. The result
    equals the walk bit for bit. Option `force` rewrites forests of every strategy.

    ```mlir
    %y = graph.forest %x, ... {strategy = "perfect_traversal", ...}
    ```
    becomes, per level,
    ```mlir
    %f = graph.gather %level_feature, %node {axis = 0 : i64}
    %v = graph.gather_elements %x, %f {axis = 1 : i64}
    %t = graph.gather %level_threshold, %node {axis = 0 : i64}
    %c = graph.compare %v, %t {predicate = "le"}
    %next = graph.where %c, %twice, %twice_plus_one
    ```
    """

    name = "tree-to-perfect-traversal"
    force: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        carry_out(ctx, op, "perfect_traversal", DEEPEST, _program, self.force)
