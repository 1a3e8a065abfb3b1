"""`tree-to-gemm`: a forest as matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from irkit.dialects.graph import CastOp, CompareOp, MatmulOp
from irkit.dialects.types import element_type
from irkit.passes.graph.tree_programs import ForestArrays, Ops, carry_out
from irkit.weights import Array

DEEPEST = 10


@dataclass
class Paths:
    """Per tree, padded to the largest: inner nodes, and for each leaf its path (+1 left, -1 right)."""

    feature: Array
    threshold: Array
    nan_left: Array
    path: Array
    lefts: Array
    value: Array


def _inner_and_leaves(
    f: ForestArrays, tree: int
) -> tuple[list[int], list[tuple[int, dict[int, int]]]]:
    """Inner nodes of a tree, and its leaves with the direction taken at each node on the way."""
    inner: list[int] = []
    leaves: list[tuple[int, dict[int, int]]] = []
    stack: list[tuple[int, dict[int, int]]] = [(int(f.root[tree]), {})]
    while stack:
        node, way = stack.pop()
        if f.left[node] == node:
            leaves.append((node, way))
            continue
        inner.append(node)
        stack.append((int(f.right[node]), {**way, node: -1}))
        stack.append((int(f.left[node]), {**way, node: 1}))
    return inner, leaves


def paths(f: ForestArrays) -> Paths:
    """The matrices of the strategy. Padded leaves are unreachable: no count is -1."""
    trees = [_inner_and_leaves(f, t) for t in range(f.trees)]
    most = max(max((len(inner) for inner, _ in trees), default=1), 1)
    ends = max(len(leaves) for _, leaves in trees)
    found = Paths(
        np.zeros((f.trees, most), np.int64),
        np.zeros((f.trees, most), f.threshold.dtype),
        np.zeros((f.trees, most), np.bool_),
        np.zeros((f.trees, most, ends), np.float32),
        np.full((f.trees, 1, ends), -1, np.float32),
        np.zeros((f.trees, ends, f.value.shape[1]), f.value.dtype),
    )
    for t, (inner, leaves) in enumerate(trees):
        found.feature[t, : len(inner)] = f.feature[inner]
        found.threshold[t, : len(inner)] = f.threshold[inner]
        found.nan_left[t, : len(inner)] = f.nan_left[inner]
        column = {node: i for i, node in enumerate(inner)}
        for number, (leaf, way) in enumerate(leaves):
            for node, direction in way.items():
                found.path[t, column[node], number] = direction
            found.lefts[t, 0, number] = sum(d == 1 for d in way.values())
            found.value[t, number] = f.value[leaf]
    return found


def _program(ops: Ops, f: ForestArrays) -> SSAValue | None:
    if not np.isfinite(f.value).all():
        return None  # Leaves that are not chosen count as 0 times their value.
    found = paths(f)
    nodes = found.feature.shape[1]
    picked = ops.gather(ops.x, ops.constant(found.feature.reshape(-1), "feature"), 1)
    left = ops.goes_left(
        picked,
        ops.constant(found.threshold.reshape(-1), "threshold"),
        ops.constant(found.nan_left.reshape(-1), "nan_left"),
        f,
    )
    held = ops.reshape(ops(CastOp, left, to=f32), f.trees, 1, nodes)
    counts = ops(MatmulOp, held, ops.constant(found.path, "path"))
    here = ops(CompareOp, counts, ops.constant(found.lefts, "lefts"), predicate=StringAttr("eq"))
    chosen = ops(CastOp, here, to=element_type(f.value.dtype))
    leaves = ops(MatmulOp, chosen, ops.constant(found.value, "value"))
    return ops.total(ops.reshape(leaves, f.trees, f.value.shape[1]), f)


@dataclass(frozen=True)
class TreeToGemm(ModulePass):
    """Rewrite forests of strategy "gemm" as two matrix products (Hummingbird's GEMM strategy).

    All comparisons of all trees are made at once; a first product counts, for each leaf, how many of
    its path's comparisons hold, a second one picks the value of the leaf where all do. Work grows
    with 2^depth: forests deeper than 10 are left alone, and those with infinite or NaN leaves. The
    result equals the walk bit for bit. Option `force` rewrites forests of every strategy.

    ```mlir
    %y = graph.forest %x, ... {strategy = "gemm", ...}
    ```
    becomes
    ```mlir
    %0 = graph.gather %x, %features {axis = 1 : i64}
    %1 = graph.compare %0, %thresholds {predicate = "le"}
    ...
    %2 = graph.matmul %conditions, %paths
    %3 = graph.compare %2, %lefts {predicate = "eq"}
    %4 = graph.matmul %chosen, %values
    %y = graph.reduce %4 {kind = "sum", ...}
    ```
    """

    name = "tree-to-gemm"
    force: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        carry_out(ctx, op, "gemm", DEEPEST, _program, self.force)
