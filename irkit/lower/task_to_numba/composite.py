"""The readable PROGRAM of a function of calls and loops: the appends of all that it runs, and the steps that
run them."""

from __future__ import annotations

from itertools import count

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.utils.hints import isa

from irkit.dialects.functions import function_named
from irkit.dialects.state import state_of
from irkit.dialects.task import CompositeOp
from irkit.lower.task_to_numba.program import Describer, kernels_of
from irkit.passes.task.composite_text import parts_of, read_composite
from irkit.passes.task.program_text import programs_of, read_program
from irkit.passes.task.proof import require_proof
from irkit.passes.task.vdevices import device_of
from irkit.schedule.composite import (
    ALIGNED,
    Part,
    Repeat,
    Run,
    Step,
    Window,
    runs_of,
)
from irkit.schedule.model import Buffer, Schedule
from irkit.schedule.tables import (
    ARENA,
    CONSTANTS,
    FIRST_INPUT,
    Appended,
    Moving,
    Operand,
    Port,
    Program,
    Ran,
    Repeated,
)
from irkit.weights import WeightStore


def describe_composite(module: ModuleOp, op: CompositeOp, weights: WeightStore) -> Program:
    """Everything of a composite but its code. Raises as `describe`."""
    require_proof(module, op)
    return _Describer(module, op, weights).program()


class _Describer:
    def __init__(self, module: ModuleOp, op: CompositeOp, weights: WeightStore) -> None:
        self.module, self.op = module, op
        self.composite = read_composite(op)
        self.parts = parts_of(module)
        names = {run.program for run in runs_of(self.composite.steps)}
        programs = [p for p in programs_of(module) if p.sym_name.data in names]
        self.schedules = {p.sym_name.data: read_program(module, p) for p in programs}
        self.kernels = kernels_of(module, list(self.schedules.values()))
        self.describers = {
            p.sym_name.data: Describer(module, p, self.schedules[p.sym_name.data], weights)
            for p in programs
        }
        self.constants: dict[str, tuple[int, int]] = {}
        self.constant_bytes = 0
        # What is state is called as the input that it stands for.
        function = function_named(module, op.function.string_value())
        assert function is not None
        self.function, self.pairs = function, state_of(function)
        inputs, outputs, states = map(self._ports, ("input", "output", "state"))
        self.inputs, self.outputs = tuple(inputs.values()), tuple(outputs.values())
        self.states = tuple(states.values())
        bases = count(FIRST_INPUT)
        spaces = (("input", inputs), ("output", outputs), ("state", states))
        self.bases = {(space, n): next(bases) for space, ports in spaces for n in ports}
        self.first_moving = next(bases)
        self.appends: list[Appended] = []
        self.moving: list[Moving] = []
        self.waves = 0

    def program(self) -> Program:
        """Everything together."""
        device = device_of(self.module)
        for describer in self.describers.values():
            self._place_constants(describer)
        schedules = self.schedules.values()
        steps = tuple(self._step(step) for step in self.composite.steps)
        return Program(
            device.name,
            device.veus,
            device.threads,
            max((s.shared_bytes for s in schedules), default=0),
            self.inputs,
            self.outputs,
            self.arena + max((s.arena_bytes for s in schedules), default=0),
            0,
            self.constant_bytes,
            tuple((name, at, size) for name, (at, size) in self.constants.items()),
            tuple(self.kernels),
            tuple(self.appends),
            tuple(m.data for m in self.op.modes or ()),
            self.op.verified.data if self.op.verified is not None else "",
            states=self.states,
            steps=steps,
            moving=tuple(self.moving),
        ).sealed()

    def _ports(self, space: str) -> dict[int, Port]:
        """What buffers of a space stand for, by number."""
        kind = "input" if space == "state" else space
        names = self.function.attributes.get(f"irkit.{kind}s")
        given = [n.data for n in names.data] if isa(names, ArrayAttr[StringAttr]) else []
        found = {b.port or 0: b for b in self.composite.buffers if b.space == space}
        ports: dict[int, Port] = {}
        for port, buffer in sorted(found.items()):
            n = self.pairs[port].argument if space == "state" else port
            name = given[n] if n < len(given) else f"{kind}{n}"
            ports[port] = Port(name, buffer.element, buffer.shape)
        return ports

    def _place_constants(self, describer: Describer) -> None:
        """Constants of one name are there once."""
        for name, _, size in describer.constants:
            if name not in self.constants:
                self.constants[name] = self.constant_bytes, size
                self.constant_bytes += -(-size // ALIGNED) * ALIGNED

    # Steps

    def _step(self, step: Step) -> Ran | Repeated:
        if not isinstance(step, Run):
            trips = step.trips if isinstance(step, Repeat) else self.base(Window(step.condition))
            return Repeated(trips, tuple(self._step(inner) for inner in step.steps))
        schedule, describer = self.schedules[step.program], self.describers[step.program]
        first, moved = len(self.appends), len(self.moving)
        places = _Placed(self, step, self.parts[step.program])
        for number in range(len(schedule.appends)):
            append = describer.append(number, self.kernels)
            launch = schedule.launches[schedule.appends[number].launch]
            operands = tuple(
                places.operand(schedule, access.buffer)
                for access in (*launch.reads, *launch.writes)
            )
            self.appends.append(
                append._replace(
                    wave=append.wave + self.waves,
                    waits=tuple(w + first for w in append.waits),
                    operands=operands,
                )
            )
        self.waves = max((a.wave for a in self.appends), default=-1) + 1
        return Ran(first, len(self.appends), (moved, len(self.moving)))

    def base(self, window: Window) -> Operand:
        """Where a window lies: a moving one has a base of its own."""
        buffer = self.composite.buffers[window.buffer]
        if buffer.space == "arena":
            at = Operand(ARENA, (buffer.offset or 0) + window.offset)
        else:
            at = Operand(self.bases[buffer.space, buffer.port or 0], window.offset)
        if not any(window.steps):
            return at
        self.moving.append(Moving(at.base, at.offset, window.steps))
        return Operand(self.first_moving + len(self.moving) - 1, 0)

    def constant(self, buffer: Buffer) -> int:
        """Where a constant lies."""
        return self.constants[buffer.source or ""][0]

    @property
    def arena(self) -> int:
        """Where the programs' own arenas begin."""
        return -(-self.composite.link_bytes // ALIGNED) * ALIGNED


class _Placed:
    """Where the buffers of a program lie in one run of it."""

    def __init__(self, describer: _Describer, run: Run, part: Part) -> None:
        self.describer = describer
        windows: dict[tuple[str, int], Window] = {
            **{("input", n): w for n, w in zip(part.given, run.reads, strict=True)},
            **{("output", n): w for n, w in zip(part.made, run.writes, strict=True)},
            **{("state", n): w for n, w in enumerate(run.state)},
        }
        self.places = {key: describer.base(window) for key, window in windows.items()}

    def operand(self, schedule: Schedule, number: int) -> Operand:
        """Address of a buffer or view."""
        buffer, shift = schedule.buffers[number], 0
        while buffer.parent is not None:
            shift += buffer.parent_offset
            buffer = schedule.buffers[buffer.parent]
        if buffer.space == "arena":
            return Operand(ARENA, self.describer.arena + (buffer.offset or 0) + shift)
        if buffer.space == "constant":
            return Operand(CONSTANTS, self.describer.constant(buffer) + shift)
        place = self.places[buffer.space, buffer.port or 0]
        return place._replace(offset=place.offset + shift)
