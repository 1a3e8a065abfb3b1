"""Where values of loops must lie, and which of them need a copy for that.

What a loop carries has one place: what it starts from, what an iteration is given and what it yields, and
what is left in the end are the same bytes. So each of these must be a value of its own, made where nothing
reads the value before it any more; where it is not, the segment before makes a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from irkit.dialects.loop_places import moves
from irkit.dialects.loops import carried_in, first_start, is_body, is_loop, starts_of
from irkit.dialects.state import state_of
from irkit.passes.graph.loops.segments import Item, Segment, is_constant, position


def updated_in(block: Block) -> dict[int, SSAValue]:
    """Which argument of a block each value that it ends with is an update of: what a loop carries, the state
    of a function."""
    outer = block.parent_op()
    if is_body(block) and is_loop(outer):
        return dict(enumerate(carried_in(outer)))
    if isinstance(outer, FuncOp):
        return {pair.result: block.args[pair.argument] for pair in state_of(outer)}
    return {}


@dataclass
class Demands:
    """Those of one block, whose inner loops have theirs already."""

    block: Block
    items: Sequence[Item]

    def place(self) -> None:
        """Say in the segments which operands get copies."""
        self._taken: set[SSAValue] = set()
        for number, item in enumerate(self.items):
            if isinstance(item, Segment):
                for op in item.behind:
                    self._want(op, 1, item, number)
                    self._want(op, 0, item, number)
            else:
                before = self.items[number - 1]
                assert isinstance(before, Segment)
                for operand in range(len(starts_of(item))):
                    self._want(item, first_start(item) + operand, before, number)
        last, terminator = self.items[-1], self.block.last_op
        assert isinstance(last, Segment)
        assert terminator is not None
        for operand in range(len(terminator.operands)):
            self._want(terminator, operand, last, len(self.items))

    def _want(self, op: Operation, operand: int, segment: Segment, number: int) -> None:
        value = op.operands[operand]
        if value in self._taken or not self._fits(op, operand, number):
            segment.copied.append((op, operand))
        else:
            self._taken.add(value)

    def _fits(self, op: Operation, operand: int, number: int) -> bool:
        value = op.operands[operand]
        if is_constant(value) or self._of_outside(value):
            return False
        if isinstance(value.owner, tensor.ExtractSliceOp) and moves(value.owner):
            # A part of another value's place.
            return False
        if isinstance(op, tensor.InsertSliceOp):
            item = self.items[number]
            assert isinstance(item, Segment)
            if operand == 0:
                return value.owner in item.ops and len(list(value.uses)) == 1
            return self._not_read(value, number, op)
        if is_loop(op):
            return self._not_read(value, number - 1, op)
        return self._is_carried(value, operand)

    def _of_outside(self, value: SSAValue) -> bool:
        """Whether a value is no loop's nor state, nor made in this block."""
        if isinstance(value, BlockArgument):
            own = is_body(self.block) or value in updated_in(self.block).values()
            return value.owner is not self.block or not own
        owner = value.owner
        return not isinstance(owner, Operation) or owner.parent is not self.block

    def _not_read(self, value: SSAValue, number: int, but: Operation) -> bool:
        """Whether nothing but `but` reads a value behind item `number`."""
        users = [use.operation for use in value.uses if use.operation is not but]
        again = sum(use.operation is but for use in value.uses) > 1
        return not again and all(position(self.items, u, self.block) <= number for u in users)

    def _is_carried(self, value: SSAValue, operand: int) -> bool:
        """Whether a value that the block ends with can lie where it has to: where an argument does that it
        updates, or nowhere else."""
        argument = updated_in(self.block).get(operand)
        if argument is None:
            return self._chain(value)[1] is None
        if value is argument:
            return True
        start, base = self._chain(value)
        if base is argument:
            return True
        if base is not None:
            return False
        # Whatever lies where the argument does is overwritten then.
        there = [argument, *(v for v in self._moved() if self._chain(v)[1] is argument)]
        users = [use.operation for v in there for use in v.uses]
        return all(self._reads_before(u, start) for u in users)

    def _moved(self) -> list[SSAValue]:
        """What is made in the place of another value."""
        loops = [o for o in self.block.ops if is_loop(o)]
        put = [o for o in self.block.ops if isinstance(o, tensor.InsertSliceOp) and moves(o)]
        return [r for o in (*loops, *put) for r in o.results]

    def _reads_before(self, user: Operation, start: int) -> bool:
        """Whether an op reads no later than in the segment that writes the new value."""
        found = position(self.items, user, self.block)
        if found != start:
            return found < start
        item = self.items[found]
        # Of moving slices and in place, the old value must not be what is written as a whole.
        return isinstance(item, Segment) and user in item.ops

    def _chain(self, value: SSAValue) -> tuple[int, SSAValue | None]:
        """The item in which the place of a value is first written, and the argument whose place it is."""
        while True:
            owner = value.owner
            if isinstance(value, BlockArgument):
                return -1, value
            assert isinstance(owner, Operation)
            number = position(self.items, owner, self.block)
            if is_loop(owner):
                operand = first_start(owner) + [r is value for r in owner.results].index(True)
                before = self.items[number - 1]
                assert isinstance(before, Segment)
                if (owner, operand) in before.copied:
                    return number - 1, None
                value = owner.operands[operand]
            elif isinstance(owner, tensor.InsertSliceOp) and moves(owner):
                item = self.items[number]
                assert isinstance(item, Segment)
                if (owner, 1) in item.copied:
                    return number, None
                value = owner.dest
            else:
                return number, None
