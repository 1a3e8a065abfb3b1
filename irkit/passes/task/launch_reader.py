"""A function of launches as the scheduler's plain data: buffers, views, launches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from irkit.context import resource_name, weights_of
from irkit.dialects.constants import constant_array
from irkit.dialects.state import state_of
from irkit.dialects.task import LaunchOp
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, Tensor, ints, numpy_dtype, tensor_type
from irkit.passes.task.rtask_footprints import RTaskFootprints
from irkit.passes.task.vdevices import device_of
from irkit.schedule.model import Buffer, Launch, Space


def row_bytes(t: Tensor) -> int:
    """Bytes of a tensor, or of one row of it if its leading dimension is the batch."""
    shape = [s for s in t.get_shape() if s != DYNAMIC]
    return int(np.prod(shape, dtype=np.int64)) * numpy_dtype(t.element_type).itemsize


def is_batch(t: Tensor) -> bool:
    """Whether the leading dimension is the batch."""
    return t.get_shape()[:1] == (DYNAMIC,)


def as_buffer(name: str, space: Space, t: Tensor) -> Buffer:
    """A tensor type as a Buffer."""
    shape = tuple(-1 if s == DYNAMIC else s for s in t.get_shape())
    dtype = numpy_dtype(t.element_type)
    return Buffer(name, space, shape, dtype.itemsize, element=dtype.name)


def constant_name(ctx: Context, op: arith.ConstantOp) -> str:
    """The name of a tensor constant's bytes in the weight store, where they are put if they lie in
    the IR."""
    name = resource_name(op)
    if name is not None:
        return name
    weights = weights_of(ctx)
    array = constant_array(op.result, weights)
    assert array is not None
    return weights.add(array, "c")


def slice_position(op: tensor.ExtractSliceOp) -> int:
    """Byte offset of a contiguous slice in its source."""
    position = 0
    shape = tensor_type(op.source).get_shape()
    for extent, offset in zip(shape, ints(op.static_offsets), strict=True):
        position = position * extent + offset
    return position * numpy_dtype(tensor_type(op.source).element_type).itemsize


@dataclass
class Unscheduled:
    """A function of launches as buffers and launches; `types` are per buffer, `ops` per launch."""

    buffers: list[Buffer] = field(default_factory=list[Buffer])
    types: list[Attribute] = field(default_factory=list[Attribute])
    launches: list[Launch] = field(default_factory=list[Launch])
    ops: list[LaunchOp] = field(default_factory=list[LaunchOp])


class LaunchReader:
    """Reads a function of launches and views into buffers and launches."""

    def __init__(self, ctx: Context, module: ModuleOp, main: func.FuncOp) -> None:
        self.ctx, self.main, self.state = ctx, main, state_of(main)
        self.found = Unscheduled()
        self.footprints = RTaskFootprints(module, device_of(module))
        self.index: dict[SSAValue, int] = {}
        self.views: dict[tuple[int, int, Attribute], int] = {}

    def read(self) -> Unscheduled:
        """All buffers and launches, in program order."""
        held = {pair.argument: number for number, pair in enumerate(self.state)}
        for number, argument in enumerate(self.main.body.block.args):
            space: Space = "state" if number in held else "input"
            self._new(argument, space, port=held.get(number, number))
        self._place_outputs()
        for op in self.main.body.block.ops:
            self._visit(op)
        return self.found

    def _place_outputs(self) -> None:
        terminator = self.main.body.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        kept = {pair.result: pair.argument for pair in self.state}
        for number, value in enumerate(terminator.operands):
            if number in kept:
                # In the place of its old value, which nothing reads any more by then.
                self.index[value] = self.index[self.main.body.block.args[kept[number]]]
            else:
                self._new(value, "output", port=number)
            self._inherit(value)
        for op in reversed(list(self.main.body.block.ops)):
            if isinstance(op, tensor.ConcatOp):
                self._place_concat(op)

    def _inherit(self, value: SSAValue) -> None:
        """What a reshape chain starts from lives where its end does."""
        while isinstance(value.owner, RESHAPES):
            source = value.owner.src
            self._view(source, self.index[value], 0)
            value = source

    def _place_concat(self, op: tensor.ConcatOp) -> None:
        if op.result not in self.index:
            self._new(op.result, self._space(op.result))
        offset = 0
        for operand in op.inputs:
            self._view(operand, self.index[op.result], offset)
            self._inherit(operand)
            offset += row_bytes(tensor_type(operand))

    def _space(self, value: SSAValue) -> Space:
        return "rows" if is_batch(tensor_type(value)) else "arena"

    def _new(
        self, value: SSAValue, space: Space, port: int | None = None, source: str | None = None
    ) -> None:
        self.index[value] = at = len(self.found.buffers)
        buffer = as_buffer(value.name_hint or f"b{at}", space, tensor_type(value))
        self.found.buffers.append(replace(buffer, port=port, source=source))
        self.found.types.append(value.type)

    def _view(self, value: SSAValue, parent: int, offset: int) -> None:
        if self.found.buffers[parent].space == "state":
            parent, offset = self._in_state(parent, offset)
        if self.found.types[parent] == value.type and offset == 0:
            self.index[value] = parent
            return
        known = self.views.get((parent, offset, value.type))
        if known is not None:
            self.index[value] = known
            return
        self.index[value] = at = len(self.found.buffers)
        if self.found.buffers[parent].space == "state":
            self.views[parent, offset, value.type] = at
        space = self.found.buffers[parent].space
        buffer = as_buffer(value.name_hint or f"b{at}", space, tensor_type(value))
        self.found.buffers.append(replace(buffer, parent=parent, parent_offset=offset))
        self.found.types.append(value.type)

    def _in_state(self, parent: int, offset: int) -> tuple[int, int]:
        """The place of a view of state in the state itself: old and new value of the same type at the same
        place are one buffer, whose elements are then known to be the same."""
        buffer = self.found.buffers[parent]
        if buffer.parent is None:
            return parent, offset
        return self._in_state(buffer.parent, buffer.parent_offset + offset)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, LaunchOp):
            self._launch(op)
        elif isinstance(op, arith.ConstantOp):
            if isinstance(op.result.type, TensorType):
                self._new(op.result, "constant", source=constant_name(self.ctx, op))
        elif isinstance(op, RESHAPES):
            if op.result not in self.index:
                self._view(op.result, self.index[op.src], 0)
        elif isinstance(op, tensor.ExtractSliceOp):
            self._view(op.result, self.index[op.source], slice_position(op))
        elif not isinstance(op, tensor.ConcatOp | tensor.DimOp | func.ReturnOp):
            raise PassFailedException(f"'{op.name}' between launches: run form-roperators first")

    def _launch(self, op: LaunchOp) -> None:
        for result in op.outputs:
            if result not in self.index:
                self._new(result, self._space(result))
        symbol = op.callee.string_value()
        launch = self.footprints.launch(
            f"{symbol}#{len(self.found.launches)}",
            symbol,
            [self.index[v] for v in op.arguments],
            [self.index[v] for v in op.outputs],
        )
        self.found.launches.append(launch)
        self.found.ops.append(op)
