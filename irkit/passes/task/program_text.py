"""Between `task.program` and the scheduler's plain data (`irkit.schedule.model`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    f64,
    i64,
)
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.functions import function_named
from irkit.dialects.task import AppendOp, BufferOp, ProgramOp, ViewOp
from irkit.dialects.task.program import MEMORY_FIGURES
from irkit.dialects.types import int_array, ints, tensor_type
from irkit.passes.task.launch_reader import Unscheduled, as_buffer
from irkit.passes.task.rtask_footprints import RTaskFootprints
from irkit.passes.task.vdevices import device_of
from irkit.row_ranges import ALL_ROWS, Rows
from irkit.schedule.model import Append, Buffer, Resident, Schedule, Space


def programs_of(module: ModuleOp) -> list[ProgramOp]:
    """All schedules of a module. Raises PassFailedException if there is none yet."""
    found = [op for op in module.ops if isinstance(op, ProgramOp)]
    if not found:
        raise PassFailedException("the module has no task.program: run schedule-wavefront first")
    return found


def plans_of(module: ModuleOp, function: str = "main") -> list[ProgramOp]:
    """The schedules of a function, in the order of their rows. Raises PassFailedException if it is not
    scheduled yet."""
    found = [p for p in programs_of(module) if p.function.string_value() == function]
    if not found:
        raise PassFailedException(f"@{function} has no task.program: run schedule-wavefront first")
    return found


def program_of(module: ModuleOp, function: str = "main") -> ProgramOp:
    """The schedule of a function, the one for the fewest rows if there are several. Raises
    PassFailedException if it is not scheduled yet."""
    return plans_of(module, function)[0]


def function_of(module: ModuleOp, program: ProgramOp) -> func.FuncOp:
    """The function that `program` is a schedule of. Raises PassFailedException if it is not there."""
    name = program.function.string_value()
    found = function_named(module, name)
    if found is not None and found.body.blocks:
        return found
    raise PassFailedException(
        f"task.program @{program.sym_name.data} is a schedule of @{name}, which is no func.func with "
        "a body in this module"
    )


def write_program(
    schedule: Schedule,
    found: Unscheduled,
    main: func.FuncOp,
    symbols: Sequence[str],
    rows: Rows = ALL_ROWS,
) -> ProgramOp:
    """Put a `task.program` that says the schedule, which is for so many rows, behind `main` and the programs
    that it has. `main` stays: it is what the schedule is proved against. `symbols` names the rOperator that
    runs each launch."""
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
            symbols[append.launch],
            (append.first_veu, append.first_veu + append.veus - 1),
            append.wave,
            [tokens[w] for w in append.waits],
            [values[a.buffer] for a in launch.reads],
            [values[a.buffer] for a in launch.writes],
            [(r.operand, r.offset) for r in append.residents],
            append.carried,
        )
        op.location = found.ops[append.launch].location
        tokens.append(builder.insert(op).token)
    name, last = main.sym_name.data, main
    title = f"{name}_schedule" + (f"_{rows[0]}" if rows[0] else "")
    program = ProgramOp(title, name, schedule.device.name, Region(block), rows)
    while isinstance(last.next_op, ProgramOp) and last.next_op.function.string_value() == name:
        last = last.next_op
    Rewriter.insert_op(program, InsertPoint.after(last))
    return program


def _buffer_op(
    number: int, buffer: Buffer, found: Unscheduled, values: list[SSAValue]
) -> BufferOp | ViewOp:
    if buffer.parent is not None:
        return ViewOp(values[buffer.parent], buffer.parent_offset, found.types[number])
    return BufferOp(buffer.space, found.types[number], port=buffer.port, source=buffer.source)


def read_program(module: ModuleOp, program: ProgramOp) -> Schedule:
    """The plain data of a `task.program`; its launches are listed in the order of the appends."""
    device = device_of(module)
    footprints = RTaskFootprints(module, device)
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
    for size in _SIZES:
        setattr(schedule, size, _number(getattr(program, size)) or 0)
    return schedule


# What a plan asks for, by the same names in the program and in the plain data.
_SIZES = ("arena_bytes", "row_bytes", "constant_bytes", "shared_bytes")


def _number(attribute: IntegerAttr[IntegerType] | None) -> int | None:
    return attribute.value.data if attribute is not None else None


def _read_buffer(op: BufferOp | ViewOp, index: dict[SSAValue, int], schedule: Schedule) -> Buffer:
    name, t = op.result.name_hint or f"b{len(schedule.buffers)}", tensor_type(op.result)
    if isinstance(op, ViewOp):
        parent = index[op.source]
        view = as_buffer(name, schedule.buffers[parent].space, t)
        return replace(view, parent=parent, parent_offset=op.offset.value.data)
    source = op.source.data if op.source is not None else None
    return replace(
        as_buffer(name, cast("Space", op.space.data), t),
        offset=_number(op.offset),
        port=_number(op.port),
        source=source,
    )


def _read_append(
    op: AppendOp,
    index: dict[SSAValue, int],
    tokens: dict[SSAValue, int],
    footprints: RTaskFootprints,
    schedule: Schedule,
) -> None:
    symbol = op.callee.string_value()
    if footprints.roperators[symbol].alternatives is not None:
        raise PassFailedException(f"@{symbol} is scheduled, but has alternatives and no choice")
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
    carried = tuple(ints(op.carried))
    schedule.appends.append(
        Append(number, first, last - first + 1, op.wave.value.data, waits, residents, carried)
    )


def set_plan(program: ProgramOp, schedule: Schedule) -> None:
    """Write offsets and sizes of a planned schedule into the program; a proof is taken back."""
    program.retract()
    buffers = [op for op in program.body.block.ops if isinstance(op, BufferOp | ViewOp)]
    for op, buffer in zip(buffers, schedule.buffers, strict=True):
        if isinstance(op, BufferOp) and buffer.offset is not None:
            op.offset = IntegerAttr(buffer.offset, i64)
    for size in _SIZES:
        setattr(program, size, IntegerAttr(getattr(schedule, size), i64))
    program.arena_ratio = FloatAttr(float(schedule.notes.get("arena_ratio", 1.0)), f64)
    program.memory = DictionaryAttr(
        {
            name: IntegerAttr(int(schedule.notes[name]), i64)
            for name in MEMORY_FIGURES
            if schedule.notes.get(name)
        }
    )


def set_residents(program: ProgramOp, schedule: Schedule) -> None:
    """Write the pinned operands of a schedule into the program's appends; a proof is taken back."""
    program.retract()
    for op, append in zip(appends_of(program), schedule.appends, strict=True):
        flat = [n for r in append.residents for n in (r.operand, r.offset)]
        op.residents = int_array(flat) if flat else None


def set_carried(program: ProgramOp, schedule: Schedule) -> None:
    """Write the carried operands of a schedule, and its waits, into the program's appends; a proof is taken
    back."""
    program.retract()
    tokens: list[SSAValue] = []
    for op, append in zip(list(appends_of(program)), schedule.appends, strict=True):
        made = AppendOp(
            op.callee,
            op.range,
            append.wave,
            [tokens[w] for w in append.waits],
            op.reads,
            op.writes,
            op.resident_pairs,
            append.carried,
        )
        made.location = op.location
        hint = op.token.name_hint
        Rewriter.replace_op(op, made)
        made.token.name_hint = hint
        tokens.append(made.token)


def appends_of(program: ProgramOp) -> Iterator[AppendOp]:
    """The appends, in list order."""
    return (op for op in program.body.block.ops if isinstance(op, AppendOp))
