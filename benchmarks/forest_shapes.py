"""Forests of many shapes, made and not trained, as text of LightGBM: the same bytes for every contender."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Shape(NamedTuple):
    """How many trees, of which depth, over how many features; all are perfect."""

    trees: int
    depth: int
    features: int

    def __str__(self) -> str:
        return f"{self.trees} x {self.depth}, {self.features} features"


SHAPES = (
    Shape(16, 2, 8),
    Shape(1024, 3, 16),
    Shape(128, 4, 32),
    Shape(100, 6, 32),
    Shape(500, 6, 500),
    Shape(100, 8, 28),
    Shape(1000, 8, 28),
    Shape(200, 10, 50),
    Shape(300, 12, 64),
)
ROWS = (1, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Rows of a call, as long as their values are no more than `MOST`."""
MOST = 100_000_000


def forest_text(shape: Shape, seed: int = 0) -> str:
    """A binary classifier: thresholds are float32, drawn as the features are."""
    rng = np.random.default_rng(seed)
    names = [f"f{n}" for n in range(shape.features)]
    head = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": shape.features - 1,
        "objective": "binary sigmoid:1",
        "feature_names": " ".join(names),
        "feature_infos": " ".join("[-10:10]" for _ in names),
    }
    lines = ["tree", *(f"{k}={v}" for k, v in head.items()), ""]
    for number in range(shape.trees):
        lines += [f"Tree={number}", *_tree(shape, rng), ""]
    return "\n".join([*lines, "end of trees", "", "pandas_categorical:null", ""])


def _tree(shape: Shape, rng: np.random.Generator) -> list[str]:
    nodes = (1 << shape.depth) - 1
    last = nodes >> 1
    # Nodes are numbered by level; a leaf is a child below zero.
    children = np.arange(1, 2 * nodes + 1).reshape(nodes, 2)
    children[last:] = -1 - np.arange(nodes + 1).reshape(-1, 2)
    scale = 1 / np.sqrt(shape.trees)
    arrays: dict[str, Any] = {
        "split_feature": rng.integers(0, shape.features, nodes),
        "split_gain": np.ones(nodes, np.int64),
        "threshold": rng.standard_normal(nodes, dtype=np.float32).astype(np.float64),
        "decision_type": np.full(nodes, 2),
        "left_child": children[:, 0],
        "right_child": children[:, 1],
        "leaf_value": rng.standard_normal(nodes + 1) * scale,
        "leaf_weight": np.ones(nodes + 1, np.int64),
        "leaf_count": np.ones(nodes + 1, np.int64),
        "internal_value": np.zeros(nodes, np.int64),
        "internal_weight": np.ones(nodes, np.int64),
        "internal_count": np.ones(nodes, np.int64),
    }
    return [
        f"num_leaves={nodes + 1}",
        "num_cat=0",
        *(f"{name}={' '.join(map(repr, values.tolist()))}" for name, values in arrays.items()),
        "is_linear=0",
        "shrinkage=1",
    ]


def rows_of(shape: Shape) -> list[int]:
    """The numbers of rows that a shape is measured at."""
    return [rows for rows in ROWS if rows * shape.features <= MOST]
