"""Tree ensembles as arrays: what every tree front end fills in, checked and turned into graph.forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from irkit.dialects.graph import ForestOp
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError
from irkit.frontends.module import GraphBuilder
from irkit.weights import Array

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


def floor32(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each threshold: for a float32 x, x <= t exactly if x <= floor32(t)."""
    # At the ends of float32's range, infinity and subnormals are the answers sought.
    with np.errstate(over="ignore", under="ignore"):
        nearest = threshold.astype(np.float32)
        above = nearest.astype(np.float64) > threshold
        nearest[above] = np.nextafter(nearest[above], np.float32(-np.inf))
    return nearest


@dataclass
class Trees:
    """All trees of an ensemble, node arrays end to end (see `graph.forest`).

    `left` and `right` are absolute node numbers; a leaf names itself twice. `value` is nodes×width.
    `root` and `output` have one entry per tree; `base` one per output column.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    nan_left: NDArray[np.bool_]
    value: Floats
    root: Ints
    output: Ints
    base: Floats
    comparison: str = "le"

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self.left == np.arange(len(self.left))

    def depth(self) -> int:
        """Largest number of comparisons on a path. Raises InvalidModelError if the nodes form no tree."""
        level, depth = self.root.astype(np.int64), 0
        while True:
            inner = level[~self.is_leaf[level]]
            if not len(inner):
                return depth
            level, depth = np.concatenate([self.left[inner], self.right[inner]]), depth + 1
            # What is reached by two ways doubles from level to level.
            if max(depth, len(level)) > 2 * len(self.left):
                raise InvalidModelError(
                    "a tree of the ensemble has a cycle, or a node of two parents"
                )

    def check(self, features: int) -> None:
        """Raise InvalidModelError if a node names a child, feature or output that does not exist."""
        for what, numbers, end in (
            ("child", self.left, len(self.left)),
            ("child", self.right, len(self.left)),
            ("root", self.root, len(self.left)),
            ("feature", self.feature, features),
            ("output", self.output, len(self.base)),
        ):
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < end:
                wrong = numbers.min() if numbers.min() < 0 else numbers.max()
                raise InvalidModelError(
                    f"the ensemble's nodes name {what} {wrong}; expected 0 to {end - 1}"
                )

    def build(self, builder: GraphBuilder, x: SSAValue) -> SSAValue:
        """Append `graph.forest` on x (rows×features); returns rows×columns in base's dtype.

        `threshold` must already be of x's element type, rounded as its comparison needs. Raises
        InvalidModelError if the nodes form no trees over x's features.
        """
        self.check(tensor_type(x).get_shape()[1])
        leaf = self.is_leaf
        # What a leaf compares is never looked at: make it canonical, so that equal forests are equal.
        feature = np.where(leaf, 0, self.feature).astype(np.int32)
        threshold = np.where(leaf, self.threshold.dtype.type(0), self.threshold)
        value = np.where(leaf[:, None], self.value, self.value.dtype.type(0))
        arrays = {
            "feature": feature,
            "threshold": threshold,
            "left": self.left.astype(np.int32),
            "right": self.right.astype(np.int32),
            "nan_left": np.where(leaf, False, self.nan_left).astype(np.bool_),
            "value": value,
            "root": self.root.astype(np.int32),
            "output": self.output.astype(np.int32),
            "base": self.base,
        }
        operands = [builder.constant(array, hint=name) for name, array in arrays.items()]
        return builder(
            ForestOp,
            x,
            *operands,
            comparison=self.comparison,
            depth=max(self.depth(), 1),
            strategy="auto",
        )


def check_splits(left: Array, right: Array, split: Array) -> None:
    """Raise InvalidModelError if a node that splits is its own child, which here would make a leaf of it."""
    nodes = np.arange(len(left))
    own: Array = split & ((left == nodes) | (right == nodes))
    if own.any():
        raise InvalidModelError(
            f"node {int(own.argmax())} of a tree of the ensemble is its own child"
        )


def join(parts: list[Trees]) -> Trees:
    """One ensemble of several, in order; comparison and base are those of the first."""
    starts = np.cumsum([0, *(len(p.left) for p in parts[:-1])])
    return Trees(
        np.concatenate([p.feature for p in parts]),
        np.concatenate([p.threshold for p in parts]),
        np.concatenate([p.left + s for p, s in zip(parts, starts, strict=True)]),
        np.concatenate([p.right + s for p, s in zip(parts, starts, strict=True)]),
        np.concatenate([p.nan_left for p in parts]),
        np.concatenate([p.value for p in parts]),
        np.concatenate([p.root + s for p, s in zip(parts, starts, strict=True)]),
        np.concatenate([p.output for p in parts]),
        parts[0].base,
        parts[0].comparison,
    )
