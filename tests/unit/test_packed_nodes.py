"""Nodes in 16 bytes: the same trees, children side by side, in clusters."""

from __future__ import annotations

import numpy as np
import pytest

from irkit.dialects.packed_nodes import packed_nodes, unpacked_nodes


def random_trees(rng, trees, leaves, dtype):
    """Arrays of `graph.forest` of which nodes lie anywhere, some reached by no root."""
    parts, count = [], 0
    for _ in range(trees):
        size = 2 * int(rng.integers(1, leaves + 1)) - 1
        left, right = np.arange(size), np.arange(size)
        ends, used = [0], 1
        while used < size:
            at = ends.pop(int(rng.integers(len(ends))))
            left[at], right[at] = used, used + 1
            ends += [used, used + 1]
            used += 2
        parts.append((left + count, right + count, count))
        count += size + int(rng.integers(2))
    left, right = np.arange(count), np.arange(count)
    for a, b, first in parts:
        left[first : first + len(a)], right[first : first + len(b)] = a, b
    place = rng.permutation(count)
    shuffled = np.empty((2, count), np.int32)
    shuffled[0, place], shuffled[1, place] = place[left], place[right]
    root = place[[first for *_, first in parts]].astype(np.int32)
    threshold = rng.choice([-np.inf, np.inf, -0.0, 1.5, np.nan], count).astype(dtype)
    feature = rng.integers(0, 1 << 20, count).astype(np.int32)
    return feature, threshold, *shuffled, rng.random(count) < 0.5, root


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(15))
def test_the_same_trees(seed, dtype):
    rng = np.random.default_rng(seed)
    trees = int(rng.integers(1, 6))
    given = random_trees(rng, trees, int(rng.integers(1, 200)), dtype)
    packed = packed_nodes(*given)
    assert packed is not None
    assert packed.nodes.dtype == np.int32
    found = unpacked_nodes(packed.nodes, np.dtype(dtype))
    feature, threshold, left, right, nan_left, root = given
    assert packed.root.tolist() == list(range(trees))
    pairs, seen = list(zip(root.tolist(), packed.root.tolist(), strict=True)), 0
    while pairs:
        old, new = pairs.pop()
        seen += 1
        assert packed.source[new] == old
        if left[old] == old:
            # Whatever is asked of it, it comes to itself.
            assert (found[2][new], found[3][new], found[4][new]) == (new - 1, new, False)
            assert np.isnan(found[1][new])
            continue
        assert found[0][new] == feature[old]
        assert found[1][new].tobytes() == threshold[old].tobytes()
        assert found[4][new] == nan_left[old]
        # Two children share half a line of a cache.
        assert found[2][new] % 2 == 0
        pairs += [(left[old], found[2][new]), (right[old], found[3][new])]
    assert len(packed.nodes) - seen in (0, trees % 2)


def test_clusters_of_three_levels():
    """A full tree of seven levels: what follows the root is the fourteen nodes of its next three levels."""
    inner = (1 << 6) - 1
    left = np.r_[2 * np.arange(inner) + 1, inner : 2 * inner + 1].astype(np.int32)
    right = np.r_[2 * np.arange(inner) + 2, inner : 2 * inner + 1].astype(np.int32)
    zeros = np.zeros(len(left), np.int32)
    packed = packed_nodes(zeros, zeros * np.float32(1), left, right, zeros != 0, zeros[:1])
    assert packed is not None
    assert packed.source[0] == 0
    assert packed.source[2:16].tolist() == list(range(1, 15))
    assert packed.source[16:30].tolist() == [15, 16, *range(31, 35), *range(63, 71)]


def test_trees_that_share_nodes_are_not_packed():
    left, right = np.array([1, 2, 2, 3], np.int32), np.array([2, 3, 2, 3], np.int32)
    zeros = np.zeros(4, np.float32)
    flags = zeros != 0
    assert packed_nodes(left, zeros, left, right, flags, np.zeros(1, np.int32)) is None
    twice = np.array([2, 2], np.int32)
    assert packed_nodes(left, zeros, left, right, flags, twice) is None
