"""The meaning of a function of launches, read from the IR on its own: no buffers, no placing.

It shares with `launch_reader` only the names of constants, since the proof compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.state import state_of
from irkit.dialects.task import LaunchOp
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, ints, numpy_dtype, tensor_type
from irkit.passes.task.launch_reader import constant_name, is_batch, row_bytes, slice_position
from irkit.schedule.meaning import Call, Function, Piece, Port, Source, Value, cut, joined


def port_of(value: SSAValue) -> Port:
    """The type of a tensor as a port."""
    t = tensor_type(value)
    shape = tuple(-1 if s == DYNAMIC else s for s in t.get_shape())
    return Port(shape, numpy_dtype(t.element_type).name)


def function_meaning(
    ctx: Context, main: func.FuncOp, meanings: Mapping[str, str] | None = None
) -> Function:
    """What `main` computes; `meanings` has names of what rOperators compute, where these are not their
    symbols. Raises PassFailedException for an op that is neither launch nor view, or
    a slice or concatenation whose bytes do not lie side by side."""
    return _Reader(ctx, main, meanings or {}).read()


class _Reader:
    def __init__(self, ctx: Context, main: func.FuncOp, meanings: Mapping[str, str]) -> None:
        self.ctx, self.main, self.meanings = ctx, main, meanings
        self.found = Function(main.sym_name.data)
        self.values: dict[SSAValue, Value] = {}

    def read(self) -> Function:
        for number, argument in enumerate(self.main.body.block.args):
            self.found.inputs.append(port_of(argument))
            self._whole(argument, ("input", number, 0))
        self.found.state = state_of(self.main)
        for op in self.main.body.block.ops:
            self._visit(op)
        return self.found

    def _whole(self, value: SSAValue, source: Source) -> None:
        self.values[value] = joined([Piece(source, 0, row_bytes(tensor_type(value)))])

    def _visit(self, op: Operation) -> None:
        if isinstance(op, LaunchOp):
            self._launch(op)
        elif isinstance(op, arith.ConstantOp):
            if isinstance(op.result.type, TensorType):
                self._whole(op.result, ("constant", constant_name(self.ctx, op), 0))
        elif isinstance(op, RESHAPES):
            self.values[op.result] = self.values[op.src]
        elif isinstance(op, tensor.ExtractSliceOp):
            self._slice(op)
        elif isinstance(op, tensor.ConcatOp):
            self._concat(op)
        elif isinstance(op, func.ReturnOp):
            self.found.outputs = [port_of(v) for v in op.operands]
            self.found.returned = [self.values[v] for v in op.operands]
        elif not isinstance(op, tensor.DimOp):
            raise PassFailedException(f"'{op.name}' between launches: run form-roperators first")

    def _launch(self, op: LaunchOp) -> None:
        number = len(self.found.calls)
        operands = tuple(self.values[v] for v in op.arguments)
        symbol = op.callee.string_value()
        self.found.calls.append(Call(self.meanings.get(symbol, symbol), operands))
        for which, result in enumerate(op.outputs):
            self._whole(result, ("result", number, which))

    def _slice(self, op: tensor.ExtractSliceOp) -> None:
        shape, sizes = tensor_type(op.source).get_shape(), ints(op.static_sizes)
        steps = ints(op.static_strides)
        at = next((d for d, size in enumerate(sizes) if size != 1), len(sizes))
        behind = list(sizes[at + 1 :]) == list(shape[at + 1 :])
        if is_batch(tensor_type(op.source)) or not behind or any(s != 1 for s in steps):
            _refuse(op, op.source.type)
        start = slice_position(op)
        size = row_bytes(tensor_type(op.result))
        self.values[op.result] = cut(self.values[op.source], start, start + size)

    def _concat(self, op: tensor.ConcatOp) -> None:
        before = tensor_type(op.result).get_shape()[: op.dim.value.data]
        if is_batch(tensor_type(op.result)) or any(s != 1 for s in before):
            _refuse(op, op.result.type)
        pieces = [piece for operand in op.inputs for piece in self.values[operand]]
        self.values[op.result] = joined(pieces)


def _refuse(op: Operation, t: Attribute) -> None:
    raise PassFailedException(
        f"'{op.name}' between launches of bytes of {t} that do not lie side by side: run "
        "form-roperators first"
    )
