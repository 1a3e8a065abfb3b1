"""Meaning of elementwise ops of integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import binary, unary
from irkit.dialects.graph.semantics.rule import Rules
from irkit.weights import Array


def _shift(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def shift(x: Array, bits: Array) -> Array:
        width = x.dtype.itemsize * 8
        inside = (bits >= 0) & (bits < width)
        some = np.where(inside, bits, x.dtype.type(width - 1))
        fill: Array = np.zeros_like(x)
        if function is np.right_shift:
            fill = np.where(x < 0, np.invert(fill), fill)
        return np.where(inside, function(x, some), fill)

    return shift


RULES: Rules = {
    graph.ModOp: binary(np.mod),
    graph.NotOp: unary(np.invert),
    graph.RemOp: binary(np.fmod),
    graph.ShiftLeftOp: binary(_shift(np.left_shift)),
    graph.ShiftRightOp: binary(_shift(np.right_shift)),
    graph.XorOp: binary(np.bitwise_xor),
}
