"""The meaning of a function of calls and loops, read from the IR on its own: no buffers, no places."""

from __future__ import annotations

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.loop_places import Affine, first_byte, trips_of, why_no_run
from irkit.dialects.loops import (
    LoopOp,
    asked_of,
    body_of,
    carried_in,
    is_loop,
    starts_of,
    yielded_by,
)
from irkit.dialects.state import state_of
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.task.function_meaning import port_of
from irkit.passes.task.launch_reader import row_bytes
from irkit.schedule.composite import Called, Composed, Cut, Looped, Op, Put


def composed_meaning(main: func.FuncOp) -> Composed:
    """What `main` computes of what it calls. Raises PassFailedException for an op that is no call, loop or
    moving slice."""
    return _Reader(main).read()


class _Reader:
    def __init__(self, main: func.FuncOp) -> None:
        self.main = main
        self.numbers: dict[SSAValue, int] = {}
        self.nbytes: dict[int, int] = {}

    def read(self) -> Composed:
        block = self.main.body.block
        arguments = self._all(list(block.args))
        body = self._block(block, [])
        terminator = block.last_op
        assert terminator is not None
        return Composed(
            self.main.sym_name.data,
            arguments,
            tuple(port_of(v) for v in block.args),
            tuple(port_of(v) for v in terminator.operands),
            body,
            self._all(list(terminator.operands)),
            self.nbytes,
            tuple((p.argument, p.result) for p in state_of(self.main)),
        )

    def _number(self, value: SSAValue) -> int:
        number = self.numbers.setdefault(value, len(self.numbers))
        self.nbytes[number] = row_bytes(tensor_type(value))
        return number

    def _all(self, values: list[SSAValue]) -> tuple[int, ...]:
        return tuple(map(self._number, values))

    def _block(self, block: Block, loops: list[LoopOp]) -> tuple[Op, ...]:
        found = [self._op(op, loops) for op in block.ops if not _is_none(op)]
        return tuple(found)

    def _op(self, op: Operation, loops: list[LoopOp]) -> Op:
        if isinstance(op, func.CallOp):
            callee = op.callee.string_value()
            return Called(callee, self._all(list(op.arguments)), self._all(list(op.res)))
        if is_loop(op):
            return self._loop(op, loops)
        if isinstance(op, tensor.ExtractSliceOp):
            offset, steps = self._place(op, loops)
            return Cut(self._number(op.source), offset, steps, self._number(op.result))
        if isinstance(op, tensor.InsertSliceOp):
            offset, steps = self._place(op, loops)
            source, dest = self._number(op.source), self._number(op.dest)
            return Put(source, dest, offset, steps, self._number(op.result))
        raise PassFailedException(f"'{op.name}' between calls: run outline-loops first")

    def _loop(self, op: LoopOp, loops: list[LoopOp]) -> Looped:
        start, arguments = self._all(list(starts_of(op))), self._all(list(carried_in(op)))
        body = self._block(body_of(op), [*loops, op])
        yielded, results = self._all(list(yielded_by(op))), self._all(list(op.res))
        try:
            trips = trips_of(op).count if isinstance(op, scf.ForOp) else None
            asked = asked_of(op) if isinstance(op, scf.WhileOp) else 0
            return Looped(trips, start, arguments, body, yielded, results, asked)
        except UnsupportedError as error:
            raise PassFailedException(str(error)) from None

    def _place(
        self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, loops: list[LoopOp]
    ) -> tuple[int, tuple[int, ...]]:
        reason = why_no_run(op)
        if reason is not None:
            raise PassFailedException(f"'{op.name}' between calls: {reason}")
        try:
            return place_in(first_byte(op), loops)
        except UnsupportedError as error:
            raise PassFailedException(str(error)) from None


def place_in(place: Affine, loops: list[LoopOp]) -> tuple[int, tuple[int, ...]]:
    """A place as an offset, and a step of each of the loops around."""
    terms = [place.terms.get(loop, 0) if isinstance(loop, scf.ForOp) else 0 for loop in loops]
    return place.constant, tuple(terms)


def _is_none(op: Operation) -> bool:
    """Whether an op is none of the function's: an index, a constant or the terminator."""
    if isinstance(op, func.ReturnOp | scf.YieldOp):
        return True
    return op.name.startswith("arith.") and not isinstance(op.results[0].type, TensorType)
