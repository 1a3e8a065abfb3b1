"""NumPy's products of arrays: transpositions and reshapes around one matrix product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops


def matmul(o: Ops[Any], a: Any, b: Any) -> Any:
    """`a @ b`, vectors too; of booleans whether any pair is true. Operands have one type."""
    if o.dtype(a) == np.bool_:
        return o.truth(matmul(o, o.cast(a, np.int32), o.cast(b, np.int32)))
    shape_a, shape_b = o.shape(a), o.shape(b)
    left = o.reshape(a, [1, *shape_a]) if len(shape_a) == 1 else a
    right = o.reshape(b, [*shape_b, 1]) if len(shape_b) == 1 else b
    y = o(graph.MatmulOp, left, right)
    shape = list(o.shape(y))
    if len(shape_b) == 1:
        shape.pop()
    if len(shape_a) == 1:
        shape.pop(len(shape) - (1 if len(shape_b) == 1 else 2))
    return o.reshape(y, shape)


def dot(o: Ops[Any], a: Any, b: Any) -> Any:
    """NumPy's dot: over the last dimension of a and the last but one of b; a number scales."""
    ranks = len(o.shape(a)), len(o.shape(b))
    if 0 in ranks:
        return o.mul(a, b)
    if ranks[1] <= 2:
        return matmul(o, a, b)
    return tensordot(o, a, b, [ranks[0] - 1], [ranks[1] - 2])


def inner(o: Ops[Any], a: Any, b: Any) -> Any:
    """Over the last dimension of both; a number scales."""
    ranks = len(o.shape(a)), len(o.shape(b))
    return o.mul(a, b) if 0 in ranks else tensordot(o, a, b, [ranks[0] - 1], [ranks[1] - 1])


def outer(o: Ops[Any], a: Any, b: Any) -> Any:
    """Each element of a times each of b, both in C order."""
    column = o.reshape(a, [math.prod(o.shape(a)), 1])
    return o.mul(column, o.reshape(b, [1, math.prod(o.shape(b))]))


def tensordot(o: Ops[Any], a: Any, b: Any, axes_a: Sequence[int], axes_b: Sequence[int]) -> Any:
    """Summed over pairs of axes; what is left of a, then of b."""
    shape_a, shape_b = o.shape(a), o.shape(b)
    free_a = [d for d in range(len(shape_a)) if d not in axes_a]
    free_b = [d for d in range(len(shape_b)) if d not in axes_b]
    inside = math.prod(shape_a[d] for d in axes_a)
    rows, columns = [shape_a[d] for d in free_a], [shape_b[d] for d in free_b]
    left = o.reshape(o.transpose(a, [*free_a, *axes_a]), [math.prod(rows), inside])
    right = o.reshape(o.transpose(b, [*axes_b, *free_b]), [inside, math.prod(columns)])
    return o.reshape(matmul(o, left, right), [*rows, *columns])
