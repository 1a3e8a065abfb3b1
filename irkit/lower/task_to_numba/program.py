"""The readable PROGRAM of an emitted module, from a scheduled `task.program`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.utils.hints import isa

from irkit.dialects.state import state_of
from irkit.dialects.task import ProgramOp, ROperatorOp
from irkit.errors import InvalidModelError
from irkit.passes.task.composite_text import composite_of
from irkit.passes.task.program_text import function_of, plans_of, read_program
from irkit.passes.task.proof import require_proof
from irkit.passes.task.vdevices import device_of
from irkit.rkernels import registry
from irkit.rkernels.bind import parameters_of
from irkit.rkernels.boxes import Boxed
from irkit.rkernels.legality import root_of, target_of
from irkit.schedule.carried import Carriage, Source, written_pieces
from irkit.schedule.footprint import Footprints
from irkit.schedule.mail import ELEMENT_BYTES
from irkit.schedule.model import Access, Buffer, Schedule
from irkit.schedule.needed import needed_appends
from irkit.schedule.tables import (
    ARENA,
    CONSTANTS,
    FIRST_INPUT,
    MAP_BYTES,
    NO_MAIL,
    ROWS,
    Appended,
    Carried,
    Mail,
    Operand,
    Pinned,
    Port,
    Program,
    Published,
    TensorMap,
)
from irkit.weights import WeightStore


def describe(module: ModuleOp, weights: WeightStore) -> Program:
    """Everything of a scheduled program but its code.

    Raises ScheduleError if it was not proved, or is not what was proved; InvalidModelError if a weight
    is not of the size that its buffer has.
    """
    composite = composite_of(module)
    if composite is not None:
        from irkit.lower.task_to_numba.composite import describe_composite

        return describe_composite(module, composite, weights)
    ops = plans_of(module)
    require_proof(module, ops[0])
    schedules = [read_program(module, op) for op in ops]
    kernels = kernels_of(module, schedules)
    plans = [
        Describer(module, op, schedule, weights).program(kernels)
        for op, schedule in zip(ops, schedules, strict=True)
    ]
    return plans[0].planned(plans)


def kernels_of(module: ModuleOp, schedules: Sequence[Schedule]) -> list[str]:
    """The rOperators that schedules launch, in the order of the module."""
    used = {launch.symbol for schedule in schedules for launch in schedule.launches}
    return [
        o.sym_name.data
        for o in module.ops
        if isinstance(o, ROperatorOp) and o.sym_name.data in used
    ]


def boxed_operands(module: ModuleOp) -> dict[str, tuple[Boxed, ...]]:
    """What the rKernels of rOperators copy in boxes, by symbol."""
    found: dict[str, tuple[Boxed, ...]] = {}
    target = target_of(device_of(module))
    for op in module.ops:
        if not isinstance(op, ROperatorOp) or op.rkernel is None:
            continue
        maps = registry.find(target, op.rkernel.data).maps
        if maps:
            given = root_of(op), parameters_of(op)
            found[op.sym_name.data] = tuple(made(*given) for made in maps.values())
    return found


def _first(item: tuple[tuple[int, int], Source]) -> tuple[int, int]:
    return item[0]


class Describer:
    """Says what a `task.program` is, in the words of an emitted module."""

    def __init__(
        self, module: ModuleOp, op: ProgramOp, schedule: Schedule, weights: WeightStore
    ) -> None:
        self.op, self.schedule = op, schedule
        self.function = function_of(module, op)
        self.attributes = self.function.attributes
        self.constants = self._constants(weights)
        self.inputs = self._ports("input", "irkit.inputs")
        self.outputs = self._ports("output", "irkit.outputs")
        self.states = self._states()
        found = (("input", self.inputs), ("output", self.outputs), ("state", self.states))
        bases = count(FIRST_INPUT)
        self.bases = {(space, number): next(bases) for space, ports in found for number in ports}
        self.boxed = boxed_operands(module)
        self.at_maps = next(bases)
        self.maps: list[TensorMap] = []

    def _constants(self, weights: WeightStore) -> list[tuple[str, int, int]]:
        """(name, offset, bytes) of each constant; equal ones are one buffer's bytes."""
        found: dict[tuple[str, int, int], None] = {}
        for buffer in self.schedule.buffers:
            if buffer.parent is not None or buffer.source is None or buffer.offset is None:
                continue
            array = weights[buffer.source]
            if (array.shape, array.dtype.name) != (buffer.shape, buffer.element):
                raise InvalidModelError(
                    f"weight '{buffer.source}' is {array.dtype}{list(array.shape)}, the program's "
                    f"'{buffer.name}' is {buffer.element}{list(buffer.shape)}"
                )
            found[buffer.source, buffer.offset, buffer.nbytes] = None
        return list(found)

    def _ports(self, space: str, attribute: str) -> dict[int, Port]:
        """What buffers of a space stand for, by number."""
        found = {
            b.port: b
            for b in self.schedule.buffers
            if b.space == space and b.parent is None and b.port is not None
        }
        return {
            i: Port(self._name(attribute, space, i), found[i].element, found[i].shape)
            for i in sorted(found)
        }

    def _name(self, attribute: str, kind: str, number: int) -> str:
        names = self.attributes.get(attribute)
        if isa(names, ArrayAttr[StringAttr]) and number < len(names.data):
            return names.data[number].data
        return f"{kind}{number}"

    def _states(self) -> dict[int, Port]:
        """State is called as the input that it stands for."""
        pairs = state_of(self.function)
        return {
            i: port._replace(name=self._name("irkit.inputs", "input", pairs[i].argument))
            for i, port in self._ports("state", "").items()
        }

    def operand(self, number: int) -> Operand:
        """Address of a buffer or view."""
        buffer, shift = self.schedule.buffers[number], 0
        while buffer.parent is not None:
            shift += buffer.parent_offset
            buffer = self.schedule.buffers[buffer.parent]
        at = buffer.offset or 0
        match buffer.space:
            case "arena":
                return Operand(ARENA, at + shift)
            case "rows":
                return Operand(ROWS, 0, at + shift)
            case "constant":
                return Operand(CONSTANTS, at + shift)
            case space:
                return Operand(self.bases[space, buffer.port or 0], shift)

    def program(self, kernels: list[str]) -> Program:
        """Everything together; `kernels` are those of all plans."""
        device = self.schedule.device
        appends = tuple(self.append(n, kernels) for n in range(len(self.schedule.appends)))
        return Program(
            device.name,
            device.veus,
            device.threads,
            self.schedule.shared_bytes,
            tuple(self.inputs.values()),
            tuple(self.outputs.values()),
            self.schedule.arena_bytes,
            self.schedule.row_bytes,
            self.schedule.constant_bytes,
            tuple(self.constants),
            tuple(kernels),
            appends,
            tuple(m.data for m in self.op.modes or ()),
            self.op.verified.data if self.op.verified is not None else "",
            states=tuple(self.states.values()),
            rows=self.op.row_range,
            mail=self.mail(),
            needed=needed_appends(self.schedule),
            maps=tuple(self.maps),
        ).sealed()

    def map(self, of: Operand, boxed: Boxed) -> Operand:
        """Where the tensor map of an operand is: with equal ones, which are one."""
        at = of.offset + boxed.first
        made = TensorMap(of.base, at, boxed.element, boxed.sizes, boxed.steps, boxed.box)
        if made not in self.maps:
            self.maps.append(made)
        return Operand(self.at_maps, MAP_BYTES * self.maps.index(made))

    def mail(self) -> Mail:
        """What is carried with its flag."""
        schedule = self.schedule
        if not any(append.carried for append in schedule.appends):
            return NO_MAIL
        found = Carriage(schedule, Footprints(schedule.buffers, schedule.launches)).sources()
        published: dict[Source, Published] = {}
        pieces: dict[tuple[tuple[int, int, int, int], ...], int] = {}
        for source in sorted(set(found.values()), key=lambda s: (s.append, s.result)):
            launch = schedule.launches[schedule.appends[source.append].launch]
            access = launch.writes[source.result]
            buffer = schedule.buffers[access.buffer]
            rows = written_pieces(access.boxes, buffer.shape)
            assert rows is not None
            table = tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in rows)
            published[source] = Published(
                source.append,
                len(launch.reads) + source.result,
                buffer.nbytes // ELEMENT_BYTES,
                pieces.setdefault(table, len(pieces)),
            )
        order = {source: number for number, source in enumerate(published)}
        carried = tuple(Carried(n, o, order[s]) for (n, o), s in sorted(found.items(), key=_first))
        return Mail(tuple(published.values()), carried, tuple(pieces))

    def append(self, number: int, kernels: Sequence[str]) -> Appended:
        """One line of the schedule."""
        append = self.schedule.appends[number]
        launch = self.schedule.launches[append.launch]
        pinned = tuple(
            Pinned(r.operand, r.offset, *self._bytes(launch.reads[r.operand]))
            for r in append.residents
        )
        operands = tuple(self.operand(a.buffer) for a in (*launch.reads, *launch.writes))
        maps = (self.map(operands[b.operand], b) for b in self.boxed.get(launch.symbol, ()))
        return Appended(
            kernels.index(launch.symbol),
            launch.tasks,
            append.first_veu,
            append.veus,
            append.wave,
            append.waits,
            (*operands, *maps),
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
