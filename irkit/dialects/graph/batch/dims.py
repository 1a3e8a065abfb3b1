"""What is known of the batch in one value: which dimension it is, and what else lies in that dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from irkit.dialects.graph.base import GraphOp


@dataclass(frozen=True)
class BatchDim:
    """The batch is dimension `axis`, of size outer · batch · inner: element (o, row, i) of it stands at
    (o · batch + row) · inner + i.

    Heads of an attention folded into the batch have `inner` heads, steps × batch flattened has `outer` steps.
    """

    axis: int
    outer: int = 1
    inner: int = 1

    @property
    def factor(self) -> int:
        """The dimension's size over that of the batch."""
        return self.outer * self.inner

    @property
    def leads(self) -> bool:
        """Whether the leading dimension is the batch and nothing else."""
        return self == BatchDim(0)

    def at(self, axis: int) -> BatchDim:
        """The same dimension in another place."""
        return replace(self, axis=axis)


class Unknown(Enum):
    """The value comes of an op where rows mix: how they lie in it is not known."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN

Dim = BatchDim | None
"""None for a value without the batch."""
State = BatchDim | Unknown | None
Rule = Callable[[GraphOp, Sequence[Dim]], Sequence[Dim]]
"""From the dimensions of an op's operands to those of its results. Raises RowsMix."""


class RowsMix(Exception):
    """A row of an op's result depends on other rows of operand number `operand`."""

    def __init__(self, operand: int, reason: str) -> None:
        super().__init__(reason)
        self.operand, self.reason = operand, reason
