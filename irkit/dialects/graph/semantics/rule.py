"""What a rule of the table is."""

from __future__ import annotations

from collections.abc import Callable

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.precision import precision_of, rounded
from irkit.weights import Array

Rule = Callable[..., Array | tuple[Array, ...]]
"""From an op and the arrays of its operands to its results, in the op's element type."""

Rules = dict[type[GraphOp], Rule]


def factors(op: GraphOp, a: Array, b: Array) -> tuple[Array, Array]:
    """Factors of a contraction, in the precision that it says."""
    precision = precision_of(op)
    return rounded(a, precision), rounded(b, precision)
