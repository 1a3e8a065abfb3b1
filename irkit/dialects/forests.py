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
