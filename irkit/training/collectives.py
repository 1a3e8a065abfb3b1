"""What the ranks of a group do together, in a function that is traced."""

from __future__ import annotations

from typing import Any

from irkit.dialects.dist import AllReduceOp, RankOp
from irkit.frontends.numpy.arrays import fresh, value_of
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.recorder import recorder


def all_reduced(x: Any, kind: str) -> Any:
    """The sum, mean, max or min of an array over all ranks."""
    return fresh(recorder().op(AllReduceOp, value_of(array_of(x)), kind=kind))


def rank() -> Any:
    """The number of the rank, an int64 of no dimensions."""
    return fresh(recorder().op(RankOp))
