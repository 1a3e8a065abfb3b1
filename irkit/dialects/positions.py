"""Where ops stand in a block that changes: which of two comes first, without a walk from one to the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

AnyOp = TypeVar("AnyOp", bound=Operation)

_GAP = 1 << 32
"""Between the numbers of neighbours: half of it, and half of that, is for what is put between them."""


class Positions:
    """The order of a block's ops, as numbers. What is moved or inserted meanwhile goes through this."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._numbers: dict[Operation, int] = {}
        self.renumbered = 0
        """How often all ops were numbered."""
        self._renumber()

    def _renumber(self) -> None:
        self._numbers = {op: _GAP * n for n, op in enumerate(self._block.ops)}
        self.renumbered += 1

    def is_before(self, op: Operation, other: Operation) -> bool:
        """Whether `op` stands before `other`; both stand in the block."""
        return self._numbers[op] < self._numbers[other]

    def ordered(self, ops: Iterable[AnyOp]) -> list[AnyOp]:
        """Ops of the block as they stand in it."""
        return sorted(ops, key=self._numbers.__getitem__)

    def move_after(self, op: Operation, place: Operation) -> None:
        """Take `op` from where it stands, to behind `place`."""
        op.detach()
        self.insert_after(op, place)

    def insert_after(self, op: Operation, place: Operation) -> None:
        """Put an op that stands nowhere behind `place`."""
        behind = place.next_op
        Rewriter.insert_op(op, InsertPoint.after(place))
        first = self._numbers[place]
        last = first + 2 * _GAP if behind is None else self._numbers[behind]
        if last - first < 2:
            self._renumber()
            return
        self._numbers[op] = (first + last) // 2

    def replace(self, op: Operation, other: Operation) -> None:
        """Put `other` in the place of `op`, which goes, and its results in those of `op`."""
        number = self._numbers.pop(op)
        Rewriter.replace_op(op, other)
        self._numbers[other] = number
