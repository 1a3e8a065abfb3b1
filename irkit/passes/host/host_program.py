"""A program of arrays on a host and a device as tasks in order, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, MemRefType, ModuleOp
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.bufferization import ToTensorOp
from irkit.dialects.functions import function_named
from irkit.dialects.program.call import CallOp
from irkit.dialects.program.check import (
    arrays_read,
    arrays_written,
    function_called,
    written_arguments,
)
from irkit.dialects.program.spaces import COSTS, CPU, CUDA, is_of_device, on_device
from irkit.dialects.program.views import Affine, StridedView, array_type, trips_of, view_of
from irkit.dialects.types import numpy_dtype
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.passes.host.actions import (
    Action,
    Call,
    Compute,
    HostProgram,
    Move,
    Place,
    Rates,
)
from irkit.passes.host.versions import Versions
from irkit.passes.program.effects import function_uses
from irkit.schedule.host.model import HostTask, Kind, Region, Use

MOST_TASKS = 20_000
"""Loops of more rounds than make so many tasks are not written out."""

_PLAIN = (affine.ApplyOp, arith.ConstantOp, memref.ReinterpretCastOp)


def host_program(
    module: ModuleOp, rates: Rates | None = None, keep_arguments: bool = False
) -> HostProgram:
    """The tasks of a program: loops of the host are unrolled; a copy between host and device, a call of a
    function, and what the host computes between those is a task. With `keep_arguments` nothing writes the
    caller's arrays: what is written to them goes to other buffers, `HostProgram.left`.

    Raises UnsupportedError for loops that ask for a condition or carry values, and for those that make more
    than 20,000 tasks.
    """
    main = function_named(module, "main")
    if main is None:
        raise InvalidModelError("the module has no function '@main'")
    walk = _Walk(rates or Rates(), keep_arguments)
    walk.function(main)
    return walk.made


class _Walk:
    def __init__(self, rates: Rates, keep_arguments: bool) -> None:
        self._rates = rates
        self._variables: dict[SSAValue, int] = {}
        self._views: dict[SSAValue, StridedView] = {}
        self._effects: dict[FuncOp, _Effects] = {}
        self._pending: list[Operation] = []
        self._rounds = 1
        self.made = HostProgram([], [], [], [], [], [])
        self._versions = Versions(self.made, keep_arguments)

    def function(self, main: FuncOp) -> None:
        """All of `@main`."""
        arguments = main.body.block.args
        for argument in arguments:
            self.made.arguments.append(self._versions.argument(argument))
        self._block(main.body.block)
        for number, argument in enumerate(arguments):
            now = self._versions.now(argument)
            if now != self.made.arguments[number]:
                self.made.left[number] = self._versions.whole(argument, now)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, _PLAIN):
                continue
            if isinstance(op, memref.AllocOp):
                self._versions.new(op.memref)
                continue
            step = _STEPS.get(type(op))
            alone = isinstance(op, scf.ForOp) and not _has_tasks(op)
            if alone or (step is None and not isinstance(op, scf.YieldOp)):
                self._pending.append(op)
                continue
            if not (isinstance(op, memref.CopyOp) and self._only_reads_beside(op)):
                self._compute()
            if step is not None:
                step(self, op)

    def _only_reads_beside(self, copy: memref.CopyOp) -> bool:
        """Whether what the host is about to compute has only read so far, and nothing that a copy changes: it
        may as well read that behind the copy, with the rest."""
        inner = [one for op in self._pending for one in op.walk()]
        changed = view_of(copy.destination).buffer
        read = {view_of(a).buffer for one in inner for a in arrays_read(one)}
        return changed not in read and not any(arrays_written(one) for one in inner)

    def loop(self, op: Operation) -> None:
        """A loop, round by round."""
        assert isinstance(op, scf.ForOp)
        if op.iter_args:
            raise UnsupportedError("'scf.for' of the host carries values")
        trips = trips_of(op)
        self._rounds *= max(1, len(trips))
        for number in trips:
            self._variables[op.body.block.args[0]] = number
            self._block(op.body.block)
        self._rounds //= max(1, len(trips))

    def asks(self, op: Operation) -> None:
        """A loop that asks."""
        raise UnsupportedError(
            f"'{op.name}' of the host goes on as long as data say so: {_line(op)}"
        )

    def copy(self, op: Operation) -> None:
        """A copy."""
        assert isinstance(op, memref.CopyOp)
        source = self._place(op.source)
        whole = view_of(op.destination).is_whole()
        self._write(op, op.destination, whole)
        target = self._place(op.destination)
        sides = on_device(op.source), on_device(op.destination)
        kind = _KINDS[sides]
        name = self.made.buffers[(source if sides[1] else target).buffer].name
        read, written = source.region, target.region
        uses = (Use(read, True, False, "source"), Use(written, False, True, "target"))
        rates = self._rates
        across = sides[0] != sides[1]
        cost = rates.copy(source.nbytes, sides[1]) if across else rates.run(source.nbytes, sides[0])
        self._add(op, f"{kind.replace('_', ' ')}: {name}", kind, uses, Move(read, written), cost)

    def call(self, op: Operation) -> None:
        """A function of the program."""
        assert isinstance(op, FunctionCall)
        callee, name = function_called(op), op.callee.string_value()
        if callee is None:
            raise InvalidModelError(f"the module has no function '@{name}'")
        if callee not in self._effects:
            self._effects[callee] = _effects(callee)
        found, arrays = self._effects[callee], list(op.operands)
        if not is_of_device(callee):
            self._call(op, name, arrays, found.reads, found.writes, False)
            return
        reads = found.reads | found.needs
        places = [self._place(a) for a in arrays]
        outputs: dict[int, Place] = {}
        for number in sorted(found.writes):
            if number in reads:
                self._turn(op, arrays[number])
                outputs[number] = self._place(arrays[number])
        action = Call(name, tuple(places), True, outputs)
        uses = [
            Use(places[n].region, True, n in found.writes - outputs.keys(), str(n)) for n in reads
        ]
        uses += [
            Use(action.written(n).region, False, True, str(n))
            for n in found.writes
            if n in outputs or n not in reads
        ]
        nbytes = sum(places[n].nbytes for n in (*reads, *found.writes))
        cost = self._cost(op, CUDA, self._rates.run(nbytes, True))
        self._add(op, name, "kernel", tuple(uses), action, cost)

    def _turn(self, op: Operation, array: SSAValue) -> None:
        view = view_of(array)
        if not view.is_whole():
            raise UnsupportedError(
                f"a function of the device changes a part of an array: {_line(op)}"
            )
        self._versions.turn(view.buffer)

    def host_call(self, op: Operation) -> None:
        """A function of the host, or its twin on the device."""
        assert isinstance(op, CallOp)
        arrays = list(op.arrays)
        reads = {n for n, a in enumerate(arrays) if a in op.read}
        writes = {n for n, a in enumerate(arrays) if a in op.written}
        there = any(map(on_device, arrays))
        self._call(op, op.callee.root_reference.data, arrays, reads, writes, there)

    def _call(
        self,
        op: Operation,
        name: str,
        arrays: Sequence[SSAValue],
        reads: Iterable[int],
        writes: Iterable[int],
        there: bool,
    ) -> None:
        reads, writes = set(reads), set(writes)
        for number in sorted(writes):
            self._write(op, arrays[number], False)
        places = tuple(map(self._place, arrays))
        uses = tuple(
            Use(p.region, n in reads, n in writes, str(n))
            for n, p in enumerate(places)
            if n in reads or n in writes
        )
        nbytes = sum(places[n].nbytes for n in (*reads, *writes))
        cost = self._cost(op, CUDA if there else CPU, self._rates.run(nbytes, there))
        kind: Kind = "kernel" if there else "function"
        self._add(op, name, kind, uses, Call(name, places, there), cost)

    def returned(self, op: Operation) -> None:
        """What the program returns."""
        self.made.results = [self._place(v) for v in op.operands]

    def _compute(self) -> None:
        """What the host computes itself, since the last task."""
        ops, self._pending = tuple(self._pending), []
        if not ops:
            return
        inner = [one for op in ops for one in op.walk()]
        written = [a for one in inner for a in arrays_written(one)]
        if not written:
            return
        read = [a for one in inner for a in arrays_read(one)]
        own = {v for one in inner for v in (*one.results, *_arguments_in(one))}
        outer = _Outer(own)
        for one in inner:
            for value in one.operands:
                outer.need(value)
        for array in written:
            if view_of(array).buffer not in own:
                self._write(ops[0], array, False)
        touched = [a for a in dict.fromkeys([*read, *written]) if view_of(a).buffer not in own]
        uses = [Use(self._touched(a), a in read, a in written) for a in touched]
        arrays = {b: self._versions.whole(b, self._versions.now(b)) for b in outer.buffers}
        variables = {v: n for v, n in self._variables.items() if v not in own}
        cost = self._rates.run(sum(p.nbytes for p in arrays.values()), False)
        action = Compute((*outer.plain, *ops), arrays, variables)
        self._add(ops[0], "computed by the host", "function", tuple(uses), action, cost)

    def _touched(self, array: SSAValue) -> Region:
        """Bytes of a view; all of its buffer where it moves with a loop inside of a task."""
        view = self._view(array)
        if any(v not in self._variables for v in view.offset.factors):
            buffer = view.buffer
            return self._versions.whole(buffer, self._versions.now(buffer)).region
        return self._place(array).region

    def _write(self, op: Operation, array: SSAValue, whole: bool) -> None:
        """Before an array is written: an argument that stays as it is gets another buffer, with its contents
        where the write leaves some."""
        buffer = view_of(array).buffer
        if not self._versions.is_kept(buffer):
            return
        old, new = (self._versions.whole(buffer, n) for n in self._versions.turn(buffer))
        if whole:
            return
        uses = (
            Use(old.region, True, False, "source"),
            Use(new.region, False, True, "target"),
        )
        name = f"kept: {self.made.buffers[old.buffer].name}"
        cost = self._rates.run(2 * old.nbytes, False)
        self._add(op, name, "function", uses, Move(old.region, new.region), cost)

    def _cost(self, op: Operation, device: str, otherwise: float) -> float:
        """What a call takes, by what stands there of all rounds of its loops."""
        said = op.attributes.get(COSTS)
        found = said.data.get(device) if isinstance(said, DictionaryAttr) else None
        return found.value.data / self._rounds if isinstance(found, IntegerAttr) else otherwise

    def _add(
        self,
        op: Operation,
        name: str,
        kind: Kind,
        uses: tuple[Use, ...],
        action: Action,
        cost: float,
    ) -> None:
        if len(self.made.tasks) == MOST_TASKS:
            raise UnsupportedError(
                f"loops of the host make more than {MOST_TASKS} tasks: {_line(op)}"
            )
        self.made.tasks.append(HostTask(name, kind, uses, cost, _line(op)))
        self.made.actions.append(action)

    def _view(self, value: SSAValue) -> StridedView:
        if value not in self._views:
            self._views[value] = view_of(value)
        return self._views[value]

    def _place(self, value: SSAValue) -> Place:
        view, array = self._view(value), array_type(value)
        item = numpy_dtype(array.element_type).itemsize
        offset = self._number(view.offset) * item
        strides = tuple(s * item for s in view.strides)
        return Place(self._versions.now(view.buffer), offset, view.sizes, strides, array)

    def _number(self, at: Affine) -> int:
        return at.constant + sum(f * self._variables[v] for v, f in at.factors.items())


_KINDS: Mapping[tuple[bool, bool], Kind] = {
    (False, False): "function",
    (False, True): "to_device",
    (True, False): "to_host",
    (True, True): "kernel",
}
_STEPS: Mapping[type[Operation], Callable[[_Walk, Operation], None]] = {
    memref.CopyOp: _Walk.copy,
    FunctionCall: _Walk.call,
    CallOp: _Walk.host_call,
    scf.ForOp: _Walk.loop,
    scf.WhileOp: _Walk.asks,
    ReturnOp: _Walk.returned,
}


@dataclass(frozen=True)
class _Effects:
    """Arguments that a function may read, those that it may write, and those of whose contents before
    something is read or stays."""

    reads: frozenset[int]
    writes: frozenset[int]
    needs: frozenset[int]


def _effects(function: FuncOp) -> _Effects:
    writes = set(written_arguments(function))
    arguments = list(function.body.block.args)
    reads: set[int] = set()
    for op in function.walk():
        if isinstance(op, ToTensorOp):
            reads.add(_argument(op.memref, arguments))
        elif isinstance(op, (FunctionCall, CallOp, memref.CopyOp)):
            # What it calls may read all that it is given.
            reads |= {_argument(v, arguments) for v in op.operands}
    needs = {_argument(u.buffer, arguments) for u in function_uses(function) if u.needs}
    return _Effects(frozenset(reads - {-1}), frozenset(writes), frozenset(needs - {-1}))


def _argument(value: SSAValue, arguments: Sequence[SSAValue]) -> int:
    buffer = view_of(value).buffer
    return next((n for n, a in enumerate(arguments) if a is buffer), -1)


class _Outer:
    """What ops need of those around them: `plain` ones, in order, and `buffers`."""

    def __init__(self, own: set[SSAValue]) -> None:
        self._own = own
        self.plain: list[Operation] = []
        self.buffers: list[SSAValue] = []

    def need(self, value: SSAValue) -> None:
        """A value that is read."""
        op = value.owner
        if value in self._own or value in self.buffers or op in self.plain:
            return
        if isinstance(op, _PLAIN):
            for operand in op.operands:
                self.need(operand)
            self.plain.append(op)
        elif isinstance(value.type, MemRefType):
            self.buffers.append(value)


def _arguments_in(op: Operation) -> list[SSAValue]:
    return [a for region in op.regions for block in region.blocks for a in block.args]


def _has_tasks(op: Operation) -> bool:
    kinds = (CallOp, FunctionCall, memref.CopyOp, scf.WhileOp)
    return any(isinstance(inner, kinds) for inner in op.walk())


def _line(op: Operation) -> str:
    origin = str(op.location).removeprefix("loc(").removesuffix(")").replace('"', "")
    return "" if origin == "unknown" else origin
