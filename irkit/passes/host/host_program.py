"""A program of arrays on a host and a device as tasks in order, and what each of them does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.bufferization import Array, ToTensorOp
from irkit.dialects.functions import function_named
from irkit.dialects.program.call import CallOp
from irkit.dialects.program.check import function_called, written_arguments
from irkit.dialects.program.spaces import is_of_device, on_device
from irkit.dialects.program.views import Affine, StridedView, array_type, trips_of, view_of
from irkit.dialects.types import numpy_dtype
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.schedule.host.model import HostBuffer, HostTask, Kind, Region, Use


@dataclass(frozen=True)
class Rates:
    """What copies and functions take: bytes a second over the link and through the device's memory, and ns
    before anything starts. The link is what the reference assumes of PCIe 5, the memory an H200's."""

    link: float = 50e9
    memory: float = 4.3e12
    start_ns: float = 5_000.0


@dataclass(frozen=True)
class Move:
    """A copy from one region to another, of as many elements in the same order."""

    source: Region
    target: Region


@dataclass(frozen=True)
class Call:
    """A function on views of buffers: on the device, or on the host."""

    function: str
    arrays: tuple[Place, ...]
    on_device: bool


@dataclass(frozen=True)
class Place:
    """A view of a buffer, from `offset` bytes on; strides in bytes."""

    buffer: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    array: Array

    @property
    def region(self) -> Region:
        """Its bytes."""
        item = numpy_dtype(self.array.element_type).itemsize
        return Region.of(self.buffer, self.offset, self.sizes, self.strides, item)


@dataclass
class HostProgram:
    """Buffers and tasks in program order, and what each task does. `arguments` and `results` say which
    buffers the caller gives, and which views are returned; `arrays` are the types of buffers."""

    buffers: list[HostBuffer]
    arrays: list[Array]
    tasks: list[HostTask]
    actions: list[Move | Call]
    arguments: list[int]
    results: list[Place]


def host_program(module: ModuleOp, rates: Rates | None = None) -> HostProgram:
    """The tasks of a program: loops of the host are unrolled, a copy between host and device or a call of a
    function is a task.

    Raises UnsupportedError for what the host computes itself, and for loops that ask for a condition.
    """
    main = function_named(module, "main")
    if main is None:
        raise InvalidModelError("the module has no function '@main'")
    walk = _Walk(rates or Rates())
    walk.function(main)
    return walk.made


class _Walk:
    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._numbers: dict[SSAValue, int] = {}
        self._variables: dict[SSAValue, int] = {}
        self._views: dict[SSAValue, StridedView] = {}
        self._effects: dict[FuncOp, tuple[set[int], set[int]]] = {}
        self.made = HostProgram([], [], [], [], [], [])

    def function(self, main: FuncOp) -> None:
        """All of `@main`."""
        for argument in main.body.block.args:
            self.made.arguments.append(self._buffer(argument))
        self._block(main.body.block)

    def _buffer(self, value: SSAValue) -> int:
        number = len(self.made.buffers)
        array = array_type(value)
        item = numpy_dtype(array.element_type).itemsize
        nbytes = math.prod(array.get_shape()) * item
        space = "device" if on_device(value) else "host"
        name = value.name_hint or f"{space}{number}"
        self.made.buffers.append(HostBuffer(name, space, nbytes))
        self.made.arrays.append(array)
        self._numbers[value] = number
        return number

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, (arith.ConstantOp, affine.ApplyOp, memref.ReinterpretCastOp)):
                continue
            if isinstance(op, scf.YieldOp):
                return
            step = _STEPS.get(type(op))
            if step is None:
                raise UnsupportedError(
                    f"'{op.name}' is the host's to compute: only copies and calls are tasks"
                )
            step(self, op)

    def alloc(self, op: Operation) -> None:
        """A new array; the same one in each round of a loop."""
        if op.results[0] not in self._numbers:
            self._buffer(op.results[0])

    def loop(self, op: Operation) -> None:
        """A loop, round by round."""
        assert isinstance(op, scf.ForOp)
        if op.iter_args:
            raise UnsupportedError("'scf.for' of the host carries values")
        for number in trips_of(op):
            self._variables[op.body.block.args[0]] = number
            self._block(op.body.block)

    def copy(self, op: Operation) -> None:
        """A copy."""
        assert isinstance(op, memref.CopyOp)
        source, target = self._place(op.source), self._place(op.destination)
        sides = on_device(op.source), on_device(op.destination)
        kind = _KINDS[sides]
        name = self.made.buffers[(source if sides[1] else target).buffer].name
        read, written = source.region, target.region
        uses = (Use(read, True, False, "source"), Use(written, False, True, "target"))
        rate = self._rates.link if sides[0] != sides[1] else self._rates.memory
        nbytes = _bytes(source)
        cost = self._rates.start_ns + nbytes / rate * 1e9
        self._add(op, f"{kind.replace('_', ' ')}: {name}", kind, uses, Move(read, written), cost)

    def call(self, op: Operation) -> None:
        """A function of the program."""
        assert isinstance(op, FunctionCall)
        callee, name = function_called(op), op.callee.string_value()
        if callee is None:
            raise InvalidModelError(f"the module has no function '@{name}'")
        if callee not in self._effects:
            self._effects[callee] = _effects(callee)
        reads, writes = self._effects[callee]
        there = is_of_device(callee)
        self._call(op, name, list(op.operands), reads, writes, there)

    def host_call(self, op: Operation) -> None:
        """A function of the host."""
        assert isinstance(op, CallOp)
        arrays = list(op.arrays)
        reads = {n for n, a in enumerate(arrays) if a in op.read}
        writes = {n for n, a in enumerate(arrays) if a in op.written}
        self._call(op, op.callee.root_reference.data, arrays, reads, writes, False)

    def _call(
        self,
        op: Operation,
        name: str,
        arrays: Sequence[SSAValue],
        reads: set[int],
        writes: set[int],
        there: bool,
    ) -> None:
        places = tuple(map(self._place, arrays))
        uses = tuple(
            Use(p.region, n in reads, n in writes, str(n))
            for n, p in enumerate(places)
            if n in reads or n in writes
        )
        nbytes = sum(_bytes(places[n]) for n in (*reads, *writes))
        cost = self._rates.start_ns + nbytes / self._rates.memory * 1e9
        kind: Kind = "kernel" if there else "function"
        self._add(op, name, kind, uses, Call(name, places, there), cost)

    def returned(self, op: Operation) -> None:
        """What the program returns."""
        self.made.results = [self._place(v) for v in op.operands]

    def _add(
        self,
        op: Operation,
        name: str,
        kind: Kind,
        uses: tuple[Use, ...],
        action: Move | Call,
        cost: float,
    ) -> None:
        origin = str(op.location).removeprefix("loc(").removesuffix(")").replace('"', "")
        line = "" if origin == "unknown" else origin
        self.made.tasks.append(HostTask(name, kind, uses, cost, line))
        self.made.actions.append(action)

    def _place(self, value: SSAValue) -> Place:
        if value not in self._views:
            self._views[value] = view_of(value)
        view, array = self._views[value], array_type(value)
        item = numpy_dtype(array.element_type).itemsize
        offset = self._number(view.offset) * item
        strides = tuple(s * item for s in view.strides)
        return Place(self._numbers[view.buffer], offset, view.sizes, strides, array)

    def _number(self, at: Affine) -> int:
        return at.constant + sum(f * self._variables[v] for v, f in at.factors.items())


_KINDS: Mapping[tuple[bool, bool], Kind] = {
    (False, False): "function",
    (False, True): "to_device",
    (True, False): "to_host",
    (True, True): "kernel",
}
_STEPS: Mapping[type[Operation], Callable[[_Walk, Operation], None]] = {
    memref.AllocOp: _Walk.alloc,
    memref.CopyOp: _Walk.copy,
    FunctionCall: _Walk.call,
    CallOp: _Walk.host_call,
    scf.ForOp: _Walk.loop,
    ReturnOp: _Walk.returned,
}


def _bytes(place: Place) -> int:
    return math.prod(place.sizes) * numpy_dtype(place.array.element_type).itemsize


def _effects(function: FuncOp) -> tuple[set[int], set[int]]:
    """Numbers of the arguments that a function may read, and that it may write."""
    writes = set(written_arguments(function))
    arguments = list(function.body.block.args)
    reads: set[int] = set()
    for op in function.walk():
        if isinstance(op, ToTensorOp):
            reads.add(_argument(op.memref, arguments))
        elif isinstance(op, (FunctionCall, CallOp, memref.CopyOp)):
            # What it calls may read all that it is given.
            reads |= {_argument(v, arguments) for v in op.operands}
    return reads - {-1}, writes


def _argument(value: SSAValue, arguments: Sequence[SSAValue]) -> int:
    buffer = view_of(value).buffer
    return next((n for n, a in enumerate(arguments) if a is buffer), -1)
