"""Meaning of random bits."""

from __future__ import annotations

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.random import GROUPS, PARITY, ROTATIONS
from irkit.dialects.graph.semantics.elementwise import binary
from irkit.dialects.graph.semantics.rule import Rules
from irkit.weights import Array


def threefry(key: Array, counter: Array) -> Array:
    """Threefry-2x32 of 20 rounds on arrays of uint64, which broadcast together."""
    with np.errstate(over="ignore"):
        first, second = _words(key)
        keys = (first, second, first ^ second ^ np.uint32(PARITY))
        x, y = _words(counter)
        x, y = x + first, y + second
        for group in range(GROUPS):
            for bits in ROTATIONS[group % 2]:
                x = x + y
                y = (y << np.uint32(bits) | y >> np.uint32(32 - bits)) ^ x
            x = x + keys[(group + 1) % 3]
            y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
        return x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)


def _words(array: Array) -> tuple[Array, Array]:
    """The lower and the upper half of each element."""
    low = np.asarray(array, np.uint64) & np.uint64(0xFFFFFFFF)
    high = np.asarray(array, np.uint64) >> np.uint64(32)
    return low.astype(np.uint32), high.astype(np.uint32)


RULES: Rules = {graph.ThreefryOp: binary(threefry)}
