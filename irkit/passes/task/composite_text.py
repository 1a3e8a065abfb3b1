"""Between `task.composite` and the scheduler's plain data (`irkit.schedule.composite`)."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from irkit.dialects.state import state_of
from irkit.dialects.task import BufferOp, CompositeOp, ProgramOp, RepeatOp, RunOp, WhileOp
from irkit.dialects.task.composite import Place
from irkit.dialects.types import tensor_type
from irkit.passes.task.launch_reader import as_buffer, row_bytes
from irkit.passes.task.program_text import function_of
from irkit.schedule.composite import Composite, Part, Repeat, Run, Step, While, Window
from irkit.schedule.model import Space


def composite_of(module: ModuleOp, function: str = "main") -> CompositeOp | None:
    """The schedule of a function of calls, if the module has it."""
    found = (op for op in module.ops if isinstance(op, CompositeOp))
    return next((op for op in found if op.function.string_value() == function), None)


def read_composite(op: CompositeOp) -> Composite:
    """The plain data of a `task.composite`."""
    index: dict[SSAValue, int] = {}
    found = Composite(link_bytes=op.link_bytes.value.data if op.link_bytes is not None else 0)
    for inner in op.body.block.ops:
        if not isinstance(inner, BufferOp):
            continue
        number = index[inner.result] = len(found.buffers)
        name = inner.result.name_hint or f"b{number}"
        buffer = as_buffer(name, cast("Space", inner.space.data), tensor_type(inner.result))
        port, offset = (None if a is None else a.value.data for a in (inner.port, inner.offset))
        found.buffers.append(replace(buffer, port=port, offset=offset))
    found.steps = _steps(op.body.block, index)
    return found


def _steps(block: Block, index: dict[SSAValue, int]) -> tuple[Step, ...]:
    found: list[Step] = []
    for op in block.ops:
        if isinstance(op, RepeatOp):
            found.append(Repeat(op.trips.value.data, _steps(op.body.block, index)))
        elif isinstance(op, WhileOp):
            found.append(While(index[op.condition], _steps(op.body.block, index)))
        elif isinstance(op, RunOp):
            groups = [tuple(_window(p, index) for p in places) for places in op.places()]
            found.append(Run(op.program.string_value(), *groups))
    return tuple(found)


def _window(place: Place, index: dict[SSAValue, int]) -> Window:
    return Window(index[place.buffer], place.offset, place.steps)


def parts_of(module: ModuleOp) -> dict[str, Part]:
    """What the programs of a module are to who runs them, by name."""
    found: dict[str, Part] = {}
    for op in module.ops:
        if not isinstance(op, ProgramOp):
            continue
        function = function_of(module, op)
        terminator = function.body.block.last_op
        assert terminator is not None
        inputs, outputs = (
            tuple(row_bytes(tensor_type(v)) for v in values)
            for values in (function.body.block.args, terminator.operands)
        )
        name = function.sym_name.data
        found[op.sym_name.data] = Part(name, inputs, outputs, tuple(state_of(function)))
    return found
