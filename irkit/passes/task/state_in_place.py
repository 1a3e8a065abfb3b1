"""See that each result that is state can be written in the place of its old value.

It can where every launch that reads the old value comes before the one that makes the new, or is that one
and reads, for each element, the old value of that element alone. Launches that make state and nothing that is
read are moved behind all others for that. Where it cannot, the new value is made elsewhere, and a launch
at the end copies it.

This only finds a program that can be proved: the schedule is held to what the function means as any other
is (`irkit/schedule/translation.py`), and the rKernel to what `in_place` says (`irkit/rkernels/in_place.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.state import StatePair, state_of
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.dialects.task.roperator import lookup
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import int_array
from irkit.passes.task.function_meaning import function_meaning
from irkit.passes.task.outlining import Outliner
from irkit.passes.task.own_elements import reads_elementwise
from irkit.passes.task.results_in_place import copy_of
from irkit.remarks import applied, missed
from irkit.schedule.meaning import Function, Piece, Value

# This pass's rule in remarks.
UPDATE = "UpdateState"


def place_state(ctx: Context, main: func.FuncOp, outliner: Outliner) -> None:
    """Make every result of `main` that is state one that may be written where its old value is."""
    pairs = state_of(main)
    terminator = main.body.block.last_op
    if not pairs or not isinstance(terminator, func.ReturnOp):
        return
    _write_late(main, pairs, terminator)
    meaning = function_meaning(ctx, main)
    launches = [op for op in main.body.block.ops if isinstance(op, LaunchOp)]
    copied: list[StatePair] = []
    for pair in pairs:
        update = _Update(meaning, launches, pair)
        reason = update.why_not()
        if reason is None:
            applied(terminator, UPDATE, "result {} is written where argument {} is", *pair[::-1])
            update.allow()
        else:
            missed(terminator, UPDATE, "result {} is copied: {}", pair.result, reason)
            copied.append(pair)
    for pair in copied:
        copy = copy_of(terminator.operands[pair.result], terminator)
        terminator.operands[pair.result] = copy
        assert isinstance(copy.owner, Operation)
        outliner.outline([copy.owner])


@dataclass
class _Update:
    """One pair of state: who makes its new value, byte by byte, and who reads the old one."""

    meaning: Function
    launches: Sequence[LaunchOp]
    pair: StatePair

    def why_not(self) -> str | None:
        """Why the new value cannot be made where the old one is; None if it can."""
        for start, piece in self._made():
            kind, number, _ = piece.source
            if (kind, number, piece.start) == ("input", self.pair.argument, start):
                continue
            if kind != "result":
                return f"a part of it is {kind} {number}"
            for reader, operand, old in self._readers(start, start + piece.nbytes):
                if reader > int(number):
                    return f"launch {reader} reads what launch {number} would overwrite"
                if reader == int(number) and not self._in_place(operand, old, (start, piece)):
                    return f"launch {number} reads other elements of it than it writes"
        return None

    def allow(self) -> None:
        """Say on the rOperators that make the new value what they update in place."""
        for start, piece in self._made():
            if piece.source[0] != "result":
                continue
            number = int(piece.source[1])
            for reader, operand, _ in self._readers(start, start + piece.nbytes):
                if reader != number:
                    continue
                op = self._roperator(number)
                pairs = {*op.in_place_pairs, (operand, piece.source[2])}
                op.in_place = int_array([n for p in sorted(pairs) for n in p])

    def _made(self) -> Iterator[tuple[int, Piece]]:
        """The pieces of the new value, and at which byte of the state each lies."""
        at = 0
        for piece in self.meaning.returned[self.pair.result]:
            yield at, piece
            at += piece.nbytes

    def _readers(self, start: int, stop: int) -> Iterator[tuple[int, int, Value]]:
        """(launch, operand, value) of what reads bytes [start, stop) of the old value."""
        source = ("input", self.pair.argument, 0)
        for number, call in enumerate(self.meaning.calls):
            for operand, value in enumerate(call.operands):
                if any(p.source == source and p.start < stop and start < p.stop for p in value):
                    yield number, operand, value

    def _in_place(self, operand: int, old: Value, new: tuple[int, Piece]) -> bool:
        """Whether the launch that makes piece `new` reads as `operand` its old elements, each for itself."""
        start, piece = new
        launch = self.launches[int(piece.source[1])]
        whole = piece.start == 0 and len(old) == 1
        same = (old[0].start, old[0].stop) == (start, start + piece.nbytes)
        result = launch.outputs[piece.source[2]]
        if not (whole and same and result.type == launch.arguments[operand].type):
            return False
        op = self._roperator(int(piece.source[1]))
        target = op.terminator.values[piece.source[2]]
        return reads_elementwise(op.body.block.args[operand], target)

    def _roperator(self, number: int) -> ROperatorOp:
        op = lookup(self.launches[number], self.launches[number].callee)
        assert op is not None
        return op


def _write_late(main: func.FuncOp, pairs: Sequence[StatePair], terminator: func.ReturnOp) -> None:
    """Move the launches that make state, and nothing that another launch reads, behind all others; among
    themselves so that those that read an old value come first, where they can."""
    arguments = main.body.block.args
    old = {terminator.operands[p.result]: arguments[p.argument] for p in pairs}
    late: list[Operation] = []
    for op in reversed(list(main.body.block.ops)):
        made = [old[r] for r in op.results if r in old]
        users = {use.operation for r in op.results for use in r.uses}
        if not made or not users <= {terminator, *late}:
            continue
        late.insert(0, op)
        if not isinstance(op, LaunchOp):
            old |= {operand: made[0] for operand in op.operands}
    while late:
        op = _next(late, old)
        late.remove(op)
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(terminator))


def _next(late: Sequence[Operation], old: Mapping[SSAValue, SSAValue]) -> Operation:
    """One that needs none of the others, and that writes over nothing that they read if there is such."""
    ready = [op for op in late if not any(v.owner in late for v in op.operands)]
    for op in ready:
        written = {old[r] for r in op.results if r in old and isinstance(op, LaunchOp)}
        others = [o for o in late if o is not op]
        if written.isdisjoint(_origin(v) for o in others for v in o.operands):
            return op
    return ready[0]


def _origin(value: SSAValue) -> SSAValue:
    """What a value is a view of."""
    while isinstance(value.owner, (*RESHAPES, tensor.ExtractSliceOp)):
        value = value.owner.operands[0]
    return value
