"""The meaning of a function of calls and loops, read from the IR on its own: no buffers, no places."""

from __future__ import annotations

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.loop_places import Affine, first_byte, trips_of, why_no_run
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
        )

    def _number(self, value: SSAValue) -> int:
        number = self.numbers.setdefault(value, len(self.numbers))
        self.nbytes[number] = row_bytes(tensor_type(value))
        return number

    def _all(self, values: list[SSAValue]) -> tuple[int, ...]:
        return tuple(map(self._number, values))

    def _block(self, block: Block, loops: list[scf.ForOp]) -> tuple[Op, ...]:
        found = [self._op(op, loops) for op in block.ops if not _is_none(op)]
        return tuple(found)

    def _op(self, op: Operation, loops: list[scf.ForOp]) -> Op:
        if isinstance(op, func.CallOp):
            callee = op.callee.string_value()
            return Called(callee, self._all(list(op.arguments)), self._all(list(op.res)))
        if isinstance(op, scf.ForOp):
            return self._loop(op, loops)
        if isinstance(op, tensor.ExtractSliceOp):
            offset, steps = self._place(op, loops)
            return Cut(self._number(op.source), offset, steps, self._number(op.result))
        if isinstance(op, tensor.InsertSliceOp):
            offset, steps = self._place(op, loops)
            source, dest = self._number(op.source), self._number(op.dest)
            return Put(source, dest, offset, steps, self._number(op.result))
        raise PassFailedException(f"'{op.name}' between calls: run outline-loops first")

    def _loop(self, op: scf.ForOp, loops: list[scf.ForOp]) -> Looped:
        start, arguments = self._all(list(op.iter_args)), self._all(list(op.body.block.args[1:]))
        body = self._block(op.body.block, [*loops, op])
        terminator = op.body.block.last_op
        assert terminator is not None
        yielded, results = self._all(list(terminator.operands)), self._all(list(op.res))
        try:
            return Looped(trips_of(op).count, start, arguments, body, yielded, results)
        except UnsupportedError as error:
            raise PassFailedException(str(error)) from None

    def _place(
        self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, loops: list[scf.ForOp]
    ) -> tuple[int, tuple[int, ...]]:
        reason = why_no_run(op)
        if reason is not None:
            raise PassFailedException(f"'{op.name}' between calls: {reason}")
        try:
            return place_in(first_byte(op), loops)
        except UnsupportedError as error:
            raise PassFailedException(str(error)) from None


def place_in(place: Affine, loops: list[scf.ForOp]) -> tuple[int, tuple[int, ...]]:
    """A place as an offset, and a step of each of the loops around."""
    return place.constant, tuple(place.terms.get(loop, 0) for loop in loops)


def _is_none(op: Operation) -> bool:
    """Whether an op is none of the function's: an index, a constant or the terminator."""
    if isinstance(op, func.ReturnOp | scf.YieldOp):
        return True
    return op.name.startswith("arith.") and not isinstance(op.results[0].type, TensorType)
