"""What a rule of the table is."""

from __future__ import annotations

from collections.abc import Callable

from irkit.dialects.graph.base import GraphOp
from irkit.weights import Array

Rule = Callable[..., Array | tuple[Array, ...]]
"""From an op and the arrays of its operands to its results, in the op's element type."""

Rules = dict[type[GraphOp], Rule]
