"""Repack the arrays of a forest; shared by the lowering and by the tree strategies."""

from __future__ import annotations

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
    level = np.unique(root)
    for _ in range(depth):
        inner = level[~leaf[level]]
        level = np.unique([left[inner], right[inner]])
    if not leaf[level].all():
        return f"expected leaves after {depth} comparisons (depth), got inner nodes"
    return None
