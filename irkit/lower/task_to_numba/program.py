"""The readable PROGRAM of an emitted module, from a scheduled `task.program`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.utils.hints import isa

from irkit.dialects.task import BufferOp, ProgramOp, ROperatorOp
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import ScheduleError
from irkit.passes.task.plain import program_of, read_program
from irkit.schedule.model import Access, Buffer, Schedule
from irkit.schedule.tables import (
    ARENA,
    CONSTANTS,
    FIRST_INPUT,
    ROWS,
    Appended,
    Operand,
    Pinned,
    Port,
    Program,
)
from irkit.weights import WeightStore

_ALIGN = 256


def describe(module: ModuleOp, weights: WeightStore) -> Program:
    """Everything of a scheduled program but its code. Raises ScheduleError if it was not verified."""
    op = program_of(module)
    if op.verified is None:
        raise ScheduleError(f"task.program @{op.sym_name.data} was not proved: run verify-schedule")
    schedule = read_program(module, op)
    buffers = [o for o in op.body.block.ops if isinstance(o, BufferOp)]
    constants, at = list[tuple[str, int, int]](), 0
    for buffer in buffers:
        if buffer.space.data == "constant" and buffer.source is not None:
            size = weights[buffer.source.data].nbytes
            constants.append((buffer.source.data, at, size))
            at += -(-size // _ALIGN) * _ALIGN
    return _Describer(op, schedule, buffers, constants).program(module)


class _Describer:
    def __init__(
        self,
        op: ProgramOp,
        schedule: Schedule,
        buffers: Sequence[BufferOp],
        constants: list[tuple[str, int, int]],
    ) -> None:
        self.op, self.schedule = op, schedule
        self.constants = constants
        self.inputs = self._ports(buffers, "input", "irkit.inputs")
        self.outputs = self._ports(buffers, "output", "irkit.outputs")
        self.roots = self._roots(buffers)

    def _ports(self, buffers: Sequence[BufferOp], space: str, attribute: str) -> tuple[Port, ...]:
        found = {
            b.offset.value.data: tensor_type(b.result)
            for b in buffers
            if b.space.data == space and b.offset is not None
        }
        names = self.op.attributes.get(attribute)
        given = (
            [n.data for n in names.data]
            if isa(names, ArrayAttr[StringAttr])
            else [f"{space}{i}" for i in sorted(found)]
        )
        return tuple(
            Port(
                given[i],
                str(numpy_dtype(found[i].element_type)),
                tuple(-1 if s == DYNAMIC else s for s in found[i].get_shape()),
            )
            for i in sorted(found)
        )

    def _roots(self, buffers: Sequence[BufferOp]) -> dict[int, Operand]:
        """Address of each buffer that is no view, by its number in the schedule."""
        roots: dict[int, Operand] = {}
        offsets = {name: at for name, at, _ in self.constants}
        own = [i for i, b in enumerate(self.schedule.buffers) if b.parent is None]
        for number, op in zip(own, buffers, strict=True):
            at = op.offset.value.data if op.offset is not None else 0
            match op.space.data:
                case "arena":
                    roots[number] = Operand(ARENA, at)
                case "rows":
                    roots[number] = Operand(ROWS, 0, at)
                case "constant":
                    assert op.source is not None
                    roots[number] = Operand(CONSTANTS, offsets[op.source.data])
                case "input":
                    roots[number] = Operand(FIRST_INPUT + at, 0)
                case _:
                    roots[number] = Operand(FIRST_INPUT + len(self.inputs) + at, 0)
        return roots

    def operand(self, number: int) -> Operand:
        """Address of a buffer or view."""
        buffer, shift = self.schedule.buffers[number], 0
        while buffer.parent is not None:
            shift += buffer.parent_offset
            number, buffer = buffer.parent, self.schedule.buffers[buffer.parent]
        base, offset, per_row = self.roots[number]
        if buffer.space == "rows":
            return Operand(base, offset, per_row + shift)
        return Operand(base, offset + shift, per_row)

    def program(self, module: ModuleOp) -> Program:
        """Everything together."""
        kernels = [o.sym_name.data for o in module.ops if isinstance(o, ROperatorOp)]
        device = self.schedule.device
        return Program(
            device.name,
            device.veus,
            device.threads,
            max((launch.scratch_bytes for launch in self.schedule.launches), default=0),
            self.inputs,
            self.outputs,
            self.schedule.arena_bytes,
            self.schedule.row_bytes,
            tuple(self.constants),
            tuple(kernels),
            tuple(self._append(n, kernels) for n in range(len(self.schedule.appends))),
        )

    def _append(self, number: int, kernels: list[str]) -> Appended:
        append = self.schedule.appends[number]
        launch = self.schedule.launches[append.launch]
        pinned = tuple(
            Pinned(r.operand, r.offset, *self._bytes(launch.reads[r.operand]))
            for r in append.residents
        )
        return Appended(
            kernels.index(launch.symbol),
            launch.tasks,
            append.first_veu,
            append.veus,
            append.wave,
            append.waits,
            tuple(self.operand(a.buffer) for a in (*launch.reads, *launch.writes)),
            pinned,
        )

    def _bytes(self, access: Access) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Start and length in bytes of what each rTask reads of a contiguous operand."""
        buffer: Buffer = self.schedule.buffers[access.buffer]
        strides = np.append(np.cumprod(np.array(buffer.shape[:0:-1], dtype=np.int64))[::-1], 1)
        low = (access.boxes[:, :, 0] * strides).sum(axis=1)
        high = ((access.boxes[:, :, 1] - 1) * strides).sum(axis=1) + 1
        starts = (low * buffer.itemsize).tolist()
        return tuple(starts), tuple(((high - low) * buffer.itemsize).tolist())
