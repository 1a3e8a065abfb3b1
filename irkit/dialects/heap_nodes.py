"""Nodes of perfect trees in 8 bytes each, in the order of a heap: of `te.heap_forest`.

A node's first word is its feature, with the highest bit set where NaN goes left, and its second one is the
threshold, a float32. A tree of depth d has 2^d places, of which the first is empty: the root is at 1, and the
children of the node at s are at 2s, the left one, and 2s + 1.
"""

from __future__ import annotations

import numpy as np

from irkit.weights import Array

NODE_WORDS = 2
_NAN_LEFT = np.int32(-(1 << 31))


def heap_nodes(feature: Array, threshold: Array, nan_left: Array) -> Array:
    """The nodes (int32, trees×2^depth×2) of `te.perfect_forest`'s arrays, of which `threshold` is float32."""
    trees, inner = feature.shape
    nodes = np.zeros((trees, inner + 1, NODE_WORDS), np.int32)
    nodes[:, 1:, 0] = feature | np.where(nan_left, _NAN_LEFT, np.int32(0))
    nodes[:, 1:, 1] = threshold.view(np.int32)
    return nodes


def unpacked_heap(nodes: Array) -> tuple[Array, Array, Array]:
    """feature, threshold and nan_left of `te.perfect_forest`."""
    words = nodes[:, 1:]
    asked = words[..., 0]
    return asked & ~_NAN_LEFT, np.ascontiguousarray(words[..., 1]).view(np.float32), asked < 0
