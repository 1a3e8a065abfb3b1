"""The NumPy meaning of each graph op: a table from op class to a small function.

`evaluate` is the only way in; the interpreter and the constant folder both use it. Every rule
computes in the op's element type. Sums run in index order, so that a sequential loop over the
same elements gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import (
    attention,
    convolution,
    elementwise,
    forest,
    functions,
    integer,
    linear,
    normalisation,
    pooling,
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
    with np.errstate(all="ignore"):
        results = SEMANTICS[type(op)](op, *operands)
    if not isinstance(results, tuple):
        results = (results,)
    return [
        np.asarray(array, dtype=numpy_dtype(tensor_type(result).element_type))
        for array, result in zip(results, op.results, strict=True)
    ]


SEMANTICS: Rules = {
    **attention.RULES,
    **convolution.RULES,
    **elementwise.RULES,
    **forest.RULES,
    **functions.RULES,
    **integer.RULES,
    **linear.RULES,
    **normalisation.RULES,
    **pooling.RULES,
    **recurrent.RULES,
    **reduction.RULES,
    **shape.RULES,
}
"""Every op of the dialect has its rule here; a test holds the two lists together."""
