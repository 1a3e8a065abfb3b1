"""Repack the arrays of a forest; shared by the lowering and by the tree strategies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from irkit.weights import Array


def perfect_trees(
    feature: Array, threshold: Array, left: Array, right: Array, nan_left: Array, value: Array,
    root: Array, depth: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """The arrays of `te.perfect_forest` (feature, threshold, nan_left, value) of `graph.forest`'s.

    Below a leaf that is reached early, all inner nodes compare feature 0 with 0, and all leaves
    have its value.
    """
    leaf = left == right
    columns: list[tuple[Array, Array, Array]] = []
    node = root.reshape(-1, 1)
    for _ in range(depth):
        inner = ~leaf[node]
        columns.append(
            (
                np.where(inner, feature[node], 0).astype(feature.dtype),
                np.where(inner, threshold[node], 0).astype(threshold.dtype),
                inner & nan_left[node],
            )
        )
        node = np.stack([left[node], right[node]], axis=-1).reshape(len(root), -1)
    features, thresholds, nans = (
        np.concatenate([level[part] for level in columns], axis=1) for part in range(3)
    )
    return features, thresholds, nans, value[node]


def symmetric_trees(feature: Array, threshold: Array, nan_left: Array) -> bool:
    """Whether all nodes of a level of each tree are alike, of arrays of `te.perfect_forest`. NaN is no threshold
    that is like another."""
    first = 0
    while first < feature.shape[1]:
        for array in (feature, threshold, nan_left):
            level = array[:, first : 2 * first + 1]
            if not (level == level[:, :1]).all():
                return False
        first = 2 * first + 1
    return True


class OrderedTrees(NamedTuple):
    """The arrays of a forest (feature, threshold, left, right, nan_left, value, root) whose trees lie one behind
    another: of each its root, the other inner nodes, children behind their parents, then its leaves."""

    arrays: tuple[Array, ...]
    leaves: int
    """Of the tree that has most of them."""


def ordered_trees(
    feature: Array, threshold: Array, left: Array, right: Array, nan_left: Array, value: Array,
    root: Array,
) -> OrderedTrees | None:  # fmt: skip
    """`graph.forest`'s arrays, in that order; None if two nodes have one child, which would be there twice."""
    leaf = (left == right) & (left == np.arange(len(left)))
    node, tree = root, np.arange(len(root))
    nodes, trees = [node], [tree]
    seen = len(node)
    while not leaf[node].all():
        inner = ~leaf[node]
        tree = np.repeat(tree[inner], 2)
        node = np.stack([left[node[inner]], right[node[inner]]], axis=1).reshape(-1)
        seen += len(node)
        if seen > len(left):
            return None
        nodes.append(node)
        trees.append(tree)
    kept, owner = np.concatenate(nodes), np.concatenate(trees)
    if met_twice(kept, len(left)):
        return None
    order = np.lexsort((leaf[kept], owner))
    kept, owner = kept[order], owner[order]
    place = np.zeros(len(left), left.dtype)
    place[kept] = np.arange(len(kept), dtype=left.dtype)
    arrays = (
        np.where(leaf, 0, feature)[kept].astype(feature.dtype),
        threshold[kept],
        place[left[kept]],
        place[right[kept]],
        (nan_left & ~leaf)[kept],
        value[kept],
        np.searchsorted(owner, np.arange(len(root))).astype(root.dtype),
    )
    return OrderedTrees(arrays, int(np.bincount(owner[leaf[kept]]).max()))


def forest_fault(
    feature: Array, left: Array, right: Array, root: Array, output: Array, *,
    columns: int, features: int, depth: int,
) -> str | None:  # fmt: skip
    """Why the arrays of a forest are no trees of at most `depth` levels, if so.

    Over `features` columns of x, adding to `columns` columns of the result. A walk follows what is not
    checked here without looking.
    """
    nodes = np.arange(len(left))
    leaf = (left == nodes) & (right == nodes)
    for what, numbers, end in (
        ("child", np.concatenate([left, right]), len(nodes)),
        ("root", root, len(nodes)),
        ("feature", feature[~leaf], features),
        ("output", output, columns),
    ):
        wrong = numbers[(numbers < 0) | (numbers >= end)]
        if len(wrong):
            return f"expected {what} 0 to {end - 1}, got {wrong[0]}"
    level = _distinct(root, len(nodes))
    for _ in range(depth):
        inner = level[~leaf[level]]
        level = _distinct(np.concatenate([left[inner], right[inner]]), len(nodes))
    if not leaf[level].all():
        return f"expected leaves after {depth} comparisons (depth), got inner nodes"
    return None


def met_twice(nodes: Array, count: int) -> bool:
    """Whether one of nodes, which are numbers below `count`, is there more than once."""
    return len(_distinct(nodes, count)) < len(nodes)


def _distinct(nodes: Array, count: int) -> Array:
    """The nodes, which are numbers below `count`, once each and in order: `np.unique` looks each of millions up."""
    there = np.zeros(count, bool)
    there[nodes] = True
    return np.flatnonzero(there)
