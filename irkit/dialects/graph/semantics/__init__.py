"""The NumPy meaning of each graph op: a table from op class to a small function.

`evaluate` is the only way in; the interpreter and the constant folder both use it. Every rule
computes in the op's element type; of floats of 16 bits in float32, and its results are rounded. Sums run in index order, so that a sequential loop over the
same elements gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.bfloat16 import is_half
from irkit.dialects.graph import WhereOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import (
    attention,
    convolution,
    csr,
    elementwise,
    expression,
    forest,
    functions,
    integer,
    layer_norm,
    linear,
    nibbles,
    normalisation,
    pooling,
    random,
    recurrent,
    reduction,
    shape,
)
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.weights import Array


def evaluate(op: GraphOp, operands: Sequence[Array]) -> list[Array]:
    """The results of `op` on arrays of its operands' types.

    A dynamic dimension takes the array's size. Every value has a meaning: nothing is raised.
    """
    if type(op) not in MOVES:
        operands = [a.astype(np.float32) if is_half(a.dtype) else a for a in operands]
    with np.errstate(all="ignore"):
        results = SEMANTICS[type(op)](op, *operands)
        if not isinstance(results, tuple):
            results = (results,)
        return [
            _of_type(array, numpy_dtype(tensor_type(result).element_type))
            for array, result in zip(results, op.results, strict=True)
        ]


def _of_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """A result in its element type, which is a narrower float's by way of float32."""
    if is_half(dtype) and array.dtype != dtype:
        array = array.astype(np.float32)
    return np.asarray(array, dtype=dtype)


MOVES: frozenset[type[GraphOp]] = frozenset({*shape.RULES, WhereOp})
"""Ops that move elements and compute none."""


SEMANTICS: Rules = {
    **attention.RULES,
    **convolution.RULES,
    **csr.RULES,
    **elementwise.RULES,
    **expression.RULES,
    **forest.RULES,
    **functions.RULES,
    **integer.RULES,
    **layer_norm.RULES,
    **linear.RULES,
    **nibbles.RULES,
    **normalisation.RULES,
    **pooling.RULES,
    **random.RULES,
    **recurrent.RULES,
    **reduction.RULES,
    **shape.RULES,
}
"""Every op of the dialect has its rule here; a test holds the two lists together."""
