"""Sums that a loop carries: whole numbers to which each turn adds, and which no turn reads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import SSAValue

from irkit.dialects.graph import AddOp, ReduceOp, SubOp
from irkit.dialects.loops import carried_in, starts_of
from irkit.dialects.types import int_array, numpy_dtype, tensor_type
from irkit.passes.graph.loops.all_turns import AllTurns, shape_of


@dataclass(frozen=True)
class Running:
    """One sum: what is added to it in a turn, and what is taken from it."""

    start: SSAValue
    added: list[SSAValue]
    taken: list[SSAValue]

    def needs(self) -> list[SSAValue]:
        """Values of a turn on which the sum hangs."""
        return [*self.added, *self.taken]

    def behind(self, turns: AllTurns) -> SSAValue:
        """The sum behind the last turn."""
        found = self.start
        for values, op in ((self.added, AddOp), (self.taken, SubOp)):
            for value in values:
                found = turns.emit(op.make([found, self._sum(value, turns)]))
        return found

    def _sum(self, value: SSAValue, turns: AllTurns) -> SSAValue:
        shape, own, emit = shape_of(self.start), shape_of(value), turns.emit
        terms = turns.of_all(value)
        terms = emit.reshaped(terms, [turns.count, *[1] * (len(shape) - len(own)), *own])
        terms = emit.expanded(terms, [turns.count, *shape])
        properties = {
            "kind": StringAttr("sum"),
            "axes": int_array([0]),
            "keepdims": BoolAttr.from_bool(False),
        }
        return emit(ReduceOp.make([terms], properties))


def running_sum(loop: scf.ForOp, number: int) -> Running | None:
    """The sum that a loop carries as its value `number`; None where that is something else."""
    argument: SSAValue = carried_in(loop)[number]
    value, found = argument, Running(starts_of(loop)[number], [], [])
    while _is_summed(value) and len(uses := list(value.uses)) == 1:
        op, side = uses[0].operation, uses[0].index
        if op.parent is not loop.body.block:
            return None
        if isinstance(op, scf.YieldOp):
            return found if side == number and found.needs() else None
        if not isinstance(op, AddOp | SubOp) or op.results[0].type != argument.type:
            return None
        if isinstance(op, SubOp) and side:
            return None
        (found.added if isinstance(op, AddOp) else found.taken).append(op.operands[1 - side])
        value = op.results[0]
    return None


def _is_summed(value: SSAValue) -> bool:
    """Whether such elements may be added in another order: floats would be rounded otherwise."""
    return numpy_dtype(tensor_type(value).element_type).kind in "iu"
