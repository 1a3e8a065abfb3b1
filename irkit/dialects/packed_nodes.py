"""Nodes of trees in 16 bytes each, the two children of a node side by side: of `te.packed_forest`.

Of a node's four words the first one or two are its threshold, a float32 or a float64; the third is its
feature, with the highest bit set where NaN goes left; the fourth is the number of its left child, and the right one is the
next. A leaf's threshold is NaN and its left child the node before it, so that a walk that has come to it stays.

Roots come first. What hangs from a node lies below it in clusters of LEVELS levels, each level by level: a
cluster is 14 nodes of 16 bytes, and a walk of so many steps reads few lines of a cache. (The layout of
van Emde Boas, as Bender, Demaine and Farach-Colton's "Cache-oblivious B-trees" has it, cut at one size.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irkit.dialects.forests import met_twice
from irkit.weights import Array

NODE_WORDS = 4
LEVELS = 3
"""Of a cluster. Of 1 to 5, a forest of 2.5 million nodes took the least time with 3 on a CPU."""
_FEATURE, _CHILD = 2, 3
_NAN_LEFT = np.int32(-(1 << 31))


@dataclass(frozen=True)
class Packed:
    """`nodes` (int32, nodes×4), where each root is, and of each node which one of the arrays it was."""

    nodes: Array
    root: Array
    source: Array


def packed_nodes(
    feature: Array, threshold: Array, left: Array, right: Array, nan_left: Array, root: Array
) -> Packed | None:
    """The nodes of `graph.forest`'s arrays; None where a node is below two others, or the root of two trees.

    `threshold` is float32 or float64. What no root reaches is left out.
    """
    leaf = left == right
    levels = _levels(left, right, leaf, root)
    if levels is None:
        return None
    place = _places(left, right, leaf, root, levels)
    source = np.zeros(int(place.max(initial=0)) + 1, np.int64)
    reached = np.concatenate(levels)
    source[place[reached]] = reached
    nodes = np.zeros((len(source), NODE_WORDS), np.int32)
    words = threshold.itemsize // nodes.itemsize
    own = np.arange(len(source))
    ends = leaf[source]
    said = np.where(ends, np.nan, threshold[source]).astype(threshold.dtype)
    nodes[:, :words] = said.view(np.int32).reshape(-1, words)
    asked = feature[source] | np.where(nan_left[source], _NAN_LEFT, np.int32(0))
    nodes[:, _FEATURE] = np.where(ends, 0, asked)
    nodes[:, _CHILD] = np.where(ends, own - 1, place[left[source]])
    return Packed(nodes, place[root].astype(np.int32), source)


def unpacked_nodes(nodes: Array, dtype: np.dtype) -> tuple[Array, Array, Array, Array, Array]:
    """feature, threshold (of `dtype`), left, right and nan_left of packed nodes."""
    words = dtype.itemsize // nodes.itemsize
    threshold = np.ascontiguousarray(nodes[:, :words]).view(dtype)[:, 0]
    asked, child = nodes[:, _FEATURE], nodes[:, _CHILD]
    return asked & ~_NAN_LEFT, threshold, child, child + 1, asked < 0


def _levels(left: Array, right: Array, leaf: Array, root: Array) -> list[Array] | None:
    """The nodes of each level, from left to right, of all trees; None if they share any."""
    levels, seen = [root.astype(np.int64)], 0
    while len(levels[-1]):
        seen += len(levels[-1])
        # A graph that is no tree may have many more ways than nodes.
        if seen > len(left):
            return None
        inner = levels[-1][~leaf[levels[-1]]]
        levels.append(np.stack([left[inner], right[inner]], axis=1).reshape(-1).astype(np.int64))
    return None if met_twice(np.concatenate(levels), len(left)) else levels


def _places(left: Array, right: Array, leaf: Array, root: Array, levels: list[Array]) -> Array:
    """Where each node goes; 0 for those that no root reaches."""
    below = np.zeros(len(left), np.int64)
    for level in reversed(levels):
        inner = level[~leaf[level]]
        below[inner] = 2 + below[left[inner]] + below[right[inner]]
    place = np.zeros(len(left), np.int64)
    place[root] = np.arange(len(root))
    # Pairs begin at even numbers: two of them are a line of 64 bytes.
    free = len(root) + len(root) % 2 + _before(below[root], np.zeros_like(root))
    for top in range(0, len(levels), LEVELS):
        tops = levels[top]
        bottom, cluster = tops, np.arange(len(tops))
        for _ in range(LEVELS):
            inner = ~leaf[bottom]
            bottom, cluster = bottom[inner], cluster[inner]
            first = free[cluster] + _before(np.full(len(cluster), 2), cluster)
            place[left[bottom]], place[right[bottom]] = first, first + 1
            free = free + 2 * np.bincount(cluster, minlength=len(tops))
            bottom = np.stack([left[bottom], right[bottom]], axis=1).reshape(-1)
            cluster = np.repeat(cluster, 2)
        free = free[cluster] + _before(below[bottom], cluster)
    return place


def _before(sizes: Array, group: Array) -> Array:
    """What stands before each in its group, in order: members of a group are neighbours."""
    if not len(sizes):
        return sizes
    before = np.cumsum(sizes) - sizes
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    return before - np.repeat(before[starts], np.diff(np.r_[starts, len(sizes)]))
