"""Between the task dialect and the scheduler's plain data (`irkit.schedule.model`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.context import resource_name, weights_of
from irkit.dialects.constants import constant_array
from irkit.dialects.regions import operand_boxes
from irkit.dialects.roots import find_root
from irkit.dialects.task import (
    AppendOp,
    BufferOp,
    LaunchOp,
    ProgramOp,
    ROperatorOp,
    VDeviceOp,
    ViewOp,
)
from irkit.dialects.types import DYNAMIC, Tensor, int_array, ints, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.task.destinations import RESHAPES
from irkit.rkernels import registry
from irkit.schedule import devices
from irkit.schedule.model import (
    Access,
    Append,
    Boxes,
    Buffer,
    Launch,
    Resident,
    Schedule,
    Space,
    VDevice,
)

Footprint = tuple[list[Boxes], list[Boxes]]


def device_of(module: ModuleOp) -> VDevice:
    """The device that the module describes: what its `task.vdevice` says, rates from the registry.

    Raises PassFailedException if there is none, or none of its name is registered.
    """
    described = next((op for op in module.ops if isinstance(op, VDeviceOp)), None)
    if described is None:
        raise PassFailedException("the module has no task.vdevice: run partition-rtasks first")
    try:
        known = devices.device(described.sym_name.data)
    except UnsupportedError as error:
        raise PassFailedException(str(error)) from None
    if described.kind.data != known.kind:
        raise PassFailedException(
            f"task.vdevice @{known.name} is of kind '{known.kind}', got '{described.kind.data}'"
        )
    return replace(
        known,
        veus=described.veus.value.data,
        threads=described.threads.value.data,
        shared_bytes=described.shared_bytes.value.data,
    )


def row_bytes(t: Tensor) -> int:
    """Bytes of a tensor, or of one row of it if its leading dimension is the batch."""
    shape = [s for s in t.get_shape() if s != DYNAMIC]
    return int(np.prod(shape, dtype=np.int64)) * numpy_dtype(t.element_type).itemsize


def is_batch(t: Tensor) -> bool:
    """Whether the leading dimension is the batch."""
    return t.get_shape()[:1] == (DYNAMIC,)


def as_buffer(
    name: str,
    space: Space,
    t: Tensor,
    parent: int | None = None,
    at: int = 0,
    offset: int | None = None,
) -> Buffer:
    """A tensor type as a Buffer."""
    shape = tuple(-1 if s == DYNAMIC else s for s in t.get_shape())
    return Buffer(name, space, shape, numpy_dtype(t.element_type).itemsize, parent, at, offset)


class Footprints:
    """What each rTask of each rOperator touches, found once per symbol."""

    def __init__(self, module: ModuleOp, device: VDevice) -> None:
        self.device = device
        self.roperators = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
        self._boxes: dict[str, Footprint] = {}

    def launch(self, name: str, symbol: str, reads: list[int], writes: list[int]) -> Launch:
        """A use of `symbol` on these buffers."""
        op = self.roperators[symbol]
        if symbol not in self._boxes:
            self._boxes[symbol] = operand_boxes(op)
        read_boxes, write_boxes = self._boxes[symbol]
        cost = op.cost.value.data if op.cost is not None else 1000.0
        return Launch(
            name,
            symbol,
            op.tasks,
            tuple(Access(b, x) for b, x in zip(reads, read_boxes, strict=True)),
            tuple(Access(b, x) for b, x in zip(writes, write_boxes, strict=True)),
            cost,
            self._scratch(op),
        )

    def _scratch(self, op: ROperatorOp) -> int:
        if op.rkernel is None:
            return 0
        target = "cuda" if self.device.kind == "cuda" else "cpu"
        return registry.find(target, op.rkernel.data).scratch(find_root(op.body.block))


@dataclass
class Unscheduled:
    """A function of launches as buffers and launches; `types` and `sources` are per buffer."""

    buffers: list[Buffer] = field(default_factory=list[Buffer])
    types: list[Attribute] = field(default_factory=list[Attribute])
    sources: dict[int, str] = field(default_factory=dict[int, str])
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    launches: list[Launch] = field(default_factory=list[Launch])
    ops: list[LaunchOp] = field(default_factory=list[LaunchOp])


class Reader:
    """Reads a function of launches and views into buffers and launches."""

    def __init__(self, ctx: Context, module: ModuleOp, main: func.FuncOp) -> None:
        self.ctx, self.main = ctx, main
        self.found = Unscheduled()
        self.footprints = Footprints(module, device_of(module))
        self.index: dict[SSAValue, int] = {}

    def read(self) -> Unscheduled:
        """All buffers and launches, in program order."""
        for number, argument in enumerate(self.main.body.block.args):
            self._new(argument, "input", number)
        self._place_outputs()
        for op in self.main.body.block.ops:
            self._visit(op)
        return self.found

    def _place_outputs(self) -> None:
        terminator = self.main.body.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        for number, value in enumerate(terminator.operands):
            self._new(value, "output", number)
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

    def _new(self, value: SSAValue, space: Space, number: int | None = None) -> int:
        self.index[value] = at = len(self.found.buffers)
        name = value.name_hint or f"b{at}"
        self.found.buffers.append(as_buffer(name, space, tensor_type(value)))
        self.found.types.append(value.type)
        if number is not None:
            self.found.numbers[at] = number
        return at

    def _view(self, value: SSAValue, parent: int, offset: int) -> None:
        if self.found.types[parent] == value.type and offset == 0:
            self.index[value] = parent
            return
        self.index[value] = len(self.found.buffers)
        name = value.name_hint or f"b{len(self.found.buffers)}"
        space = self.found.buffers[parent].space
        self.found.buffers.append(as_buffer(name, space, tensor_type(value), parent, offset))
        self.found.types.append(value.type)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, LaunchOp):
            self._launch(op)
        elif isinstance(op, arith.ConstantOp):
            if isinstance(op.result.type, TensorType):
                self._constant(op)
        elif isinstance(op, RESHAPES):
            if op.result not in self.index:
                self._view(op.result, self.index[op.src], 0)
        elif isinstance(op, tensor.ExtractSliceOp):
            self._slice(op)
        elif not isinstance(op, tensor.ConcatOp | tensor.DimOp | func.ReturnOp):
            raise PassFailedException(f"'{op.name}' between launches: run form-roperators first")

    def _constant(self, op: arith.ConstantOp) -> None:
        name = resource_name(op)
        if name is None:
            weights = weights_of(self.ctx)
            array = constant_array(op.result, weights)
            assert array is not None
            name = weights.add(array, "c")
        self.found.sources[self._new(op.result, "constant")] = name

    def _slice(self, op: tensor.ExtractSliceOp) -> None:
        shape, offsets = tensor_type(op.source).get_shape(), ints(op.static_offsets)
        position = 0
        for extent, offset in zip(shape, offsets, strict=True):
            position = position * extent + offset
        itemsize = numpy_dtype(tensor_type(op.source).element_type).itemsize
        self._view(op.result, self.index[op.source], position * itemsize)

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


def write_program(schedule: Schedule, found: Unscheduled, main: func.FuncOp) -> ProgramOp:
    """Replace `main` by a `task.program` that says the schedule."""
    block = Block()
    builder = Builder(InsertPoint.at_end(block))
    values: list[SSAValue] = []
    for number, buffer in enumerate(schedule.buffers):
        values.append(builder.insert(_buffer_op(number, buffer, found, values)).results[0])
        values[-1].name_hint = buffer.name if not buffer.name[0].isdigit() else None
    tokens: list[SSAValue] = []
    for append in schedule.appends:
        launch = schedule.launches[append.launch]
        op = AppendOp(
            launch.symbol,
            (append.first_veu, append.first_veu + append.veus - 1),
            append.wave,
            [tokens[w] for w in append.waits],
            [values[a.buffer] for a in launch.reads],
            [values[a.buffer] for a in launch.writes],
            [(r.operand, r.offset) for r in append.residents],
        )
        op.location = found.ops[append.launch].location
        tokens.append(builder.insert(op).token)
    program = ProgramOp(main.sym_name.data, schedule.device.name, Region(block))
    for name, value in main.attributes.items():
        program.attributes[name] = value
    Rewriter.replace_op(main, program, [])
    return program


def _buffer_op(
    number: int, buffer: Buffer, found: Unscheduled, values: list[SSAValue]
) -> BufferOp | ViewOp:
    if buffer.parent is not None:
        return ViewOp(values[buffer.parent], buffer.parent_offset, found.types[number])
    return BufferOp(
        buffer.space, found.types[number], found.numbers.get(number), found.sources.get(number)
    )


def read_program(module: ModuleOp, program: ProgramOp) -> Schedule:
    """The plain data of a `task.program`."""
    device = device_of(module)
    footprints = Footprints(module, device)
    schedule = Schedule(device, [], [])
    index: dict[SSAValue, int] = {}
    tokens: dict[SSAValue, int] = {}
    for op in program.body.block.ops:
        if isinstance(op, BufferOp | ViewOp):
            index[op.result] = len(schedule.buffers)
            schedule.buffers.append(_read_buffer(op, index, schedule))
        elif isinstance(op, AppendOp):
            tokens[op.token] = len(schedule.appends)
            _read_append(op, index, tokens, footprints, schedule)
    schedule.arena_bytes = program.arena_bytes.value.data if program.arena_bytes is not None else 0
    schedule.row_bytes = program.row_bytes.value.data if program.row_bytes is not None else 0
    return schedule


def _read_buffer(op: BufferOp | ViewOp, index: dict[SSAValue, int], schedule: Schedule) -> Buffer:
    name, t = op.result.name_hint or f"b{len(schedule.buffers)}", tensor_type(op.result)
    if isinstance(op, ViewOp):
        parent = index[op.source]
        return as_buffer(name, schedule.buffers[parent].space, t, parent, op.offset.value.data)
    planned = op.space.data in ("arena", "rows") and op.offset is not None
    space: Space = op.space.data  # pyright: ignore[reportAssignmentType]
    at = op.offset.value.data if planned and op.offset is not None else None
    return as_buffer(name, space, t, offset=at)


def _read_append(
    op: AppendOp,
    index: dict[SSAValue, int],
    tokens: dict[SSAValue, int],
    footprints: Footprints,
    schedule: Schedule,
) -> None:
    symbol = op.callee.string_value()
    number = len(schedule.launches)
    schedule.launches.append(
        footprints.launch(
            f"{symbol}#{number}",
            symbol,
            [index[v] for v in op.reads],
            [index[v] for v in op.writes],
        )
    )
    first, last = op.range
    # A wait on a later append has no number yet; -1 makes the verifier name it.
    waits = tuple(tokens.get(w, -1) for w in op.waits)
    residents = tuple(Resident(i, o) for i, o in op.resident_pairs)
    schedule.appends.append(
        Append(number, first, last - first + 1, op.wave.value.data, waits, residents)
    )


def program_of(module: ModuleOp) -> ProgramOp:
    """The module's `task.program`. Raises PassFailedException if it is not scheduled yet."""
    for op in module.ops:
        if isinstance(op, ProgramOp):
            return op
    raise PassFailedException("the module has no task.program: run schedule-wavefront first")


def set_plan(program: ProgramOp, schedule: Schedule) -> None:
    """Write offsets and sizes of a planned schedule into the program."""
    buffers = [op for op in program.body.block.ops if isinstance(op, BufferOp | ViewOp)]
    for op, buffer in zip(buffers, schedule.buffers, strict=True):
        if isinstance(op, BufferOp) and buffer.offset is not None:
            op.offset = IntegerAttr(buffer.offset, i64)
    program.arena_bytes = IntegerAttr(schedule.arena_bytes, i64)
    program.row_bytes = IntegerAttr(schedule.row_bytes, i64)
    program.arena_ratio = FloatAttr(float(schedule.notes.get("arena_ratio", 1.0)), f64)


def set_residents(program: ProgramOp, schedule: Schedule) -> None:
    """Write the pinned operands of a schedule into the program's appends."""
    appends = [op for op in program.body.block.ops if isinstance(op, AppendOp)]
    for op, append in zip(appends, schedule.appends, strict=True):
        flat = [n for r in append.residents for n in (r.operand, r.offset)]
        op.residents = int_array(flat) if flat else None


def mark_verified(program: ProgramOp, schedule: Schedule) -> None:
    """Record in the program what was proved."""
    program.verified = StringAttr(
        f"{len(schedule.appends)} appends, {sum(a.tasks for a in schedule.launches)} rTasks"
    )
