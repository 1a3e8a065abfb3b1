"""`tree-to-traversal`: a forest as repeated gathers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from irkit.dialects.graph import GatherElementsOp, WhereOp
from irkit.passes.graph.tree_programs import ForestArrays, Ops, carry_out

DEEPEST = 64


def _program(ops: Ops, f: ForestArrays) -> SSAValue:
    feature = np.where(f.left == f.right, 0, f.feature)
    arrays = {
        "feature": feature.astype(np.int64),
        "threshold": f.threshold,
        "nan_left": f.nan_left,
        "left": f.left.astype(np.int64),
        "right": f.right.astype(np.int64),
    }
    # The first level is known: every row starts at the roots.
    at_root = {name: ops.constant(a[f.root], name) for name, a in arrays.items()}
    tables = {name: ops.constant(a, name) for name, a in arrays.items()} if f.depth > 1 else {}
    x = ops.gather(ops.x, at_root["feature"], 1)
    left = ops.goes_left(x, at_root["threshold"], at_root["nan_left"], f)
    node = ops(WhereOp, left, at_root["left"], at_root["right"])
    for _ in range(f.depth - 1):
        here = {name: ops.gather(table, node, 0) for name, table in tables.items()}
        x = ops(GatherElementsOp, ops.x, here["feature"], axis=IntegerAttr(1, i64))
        left = ops.goes_left(x, here["threshold"], here["nan_left"], f)
        node = ops(WhereOp, left, here["left"], here["right"])
    return ops.total(ops.gather(ops.constant(f.value, "value"), node, 0), f)


@dataclass(frozen=True)
class TreeToTraversal(ModulePass):
    """Rewrite forests of strategy "traversal" as `depth` rounds of gathers (Hummingbird's TreeTraversal).

    All trees of a row go down one level a round; a leaf names itself, so that shallow trees wait
    there. The result equals the walk bit for bit.
    Option `force` rewrites forests of every strategy.

    ```mlir
    %y = graph.forest %x, ... {strategy = "traversal", ...}
    ```
    becomes, per level,
    ```mlir
    %f = graph.gather %feature, %node {axis = 0 : i64}
    %v = graph.gather_elements %x, %f {axis = 1 : i64}
    %t = graph.gather %threshold, %node {axis = 0 : i64}
    %c = graph.compare %v, %t {predicate = "le"}
    %l = graph.gather %left, %node {axis = 0 : i64}
    %r = graph.gather %right, %node {axis = 0 : i64}
    %next = graph.where %c, %l, %r
    ```
    """

    name = "tree-to-traversal"
    force: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        carry_out(ctx, op, "traversal", DEEPEST, _program, self.force)
