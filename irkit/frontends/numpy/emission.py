"""A trace as a module at the program level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import SSAValue

from irkit.annotations.host_task import HostTask
from irkit.dialects.program.builder import BuiltProgram, ProgramBuilder
from irkit.dialects.program.views import buffer_type
from irkit.dialects.segments import marked
from irkit.dialects.types import element_type
from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.recorder import Recorder
from irkit.frontends.numpy.records import (
    Buffer,
    Call,
    Compute,
    Constant,
    Counter,
    For,
    Read,
    Record,
    Value,
    View,
    While,
    Write,
    buffers_of,
    own_buffers,
)

Path = tuple[int, ...]
"""Which loops something is in, from outside: their identities."""


def emitted(
    r: Recorder, names: Sequence[str], results: Sequence[tuple[str, Buffer]]
) -> BuiltProgram:
    """The module of a trace whose arguments have `names`, and that returns whole buffers."""
    return _Emitter(r, names).program(results)


class _Emitter:
    def __init__(self, r: Recorder, names: Sequence[str]) -> None:
        types = [buffer_type(element_type(b.dtype), b.shape) for b in r.arguments]
        self._recorder = r
        self.b = ProgramBuilder(list(zip(names, types, strict=True)))
        self._buffers: dict[Buffer, SSAValue] = dict(zip(r.arguments, self.b.buffers, strict=True))
        self._parts: dict[Buffer, tuple[SSAValue, ...]] = {}
        self._written: set[tuple[Buffer, int]] = set()
        self._values: dict[Value, SSAValue] = {}
        self._counters: dict[LoopSymbol, SSAValue] = {}
        self._scopes: dict[Buffer, Path] = {}
        self.functions: dict[str, HostTask] = {}

    def program(self, results: Sequence[tuple[str, Buffer]]) -> BuiltProgram:
        self._find_scopes(self._recorder.records, ())
        for _, buffer in results:
            self._scopes[buffer] = ()
        for check in self._recorder.checks.values():
            self.b.write(self.b.constant(np.array(True)), self._buffer(check))
        self._records(self._recorder.records, ())
        built = self.b.finish([(name, self._result(buffer)) for name, buffer in results])
        return replace(built, functions=self.functions)

    def _find_scopes(self, records: Sequence[Record], path: Path) -> None:
        """In which loops each buffer is used: it is made in the innermost that has all its uses."""
        for record in records:
            if isinstance(record, For | While):
                self._find_scopes(record.body, (*path, id(record)))
            for buffer in own_buffers(record):
                known = self._scopes.get(buffer, path)
                same = [a for a, b in zip(known, path, strict=False) if a == b]
                self._scopes[buffer] = tuple(same)

    def _records(self, records: Sequence[Record], path: Path) -> None:
        for record in records:
            self.b.location = marked(_location(record.place), record.segment)
            for buffer in self._made_here(record, path):
                (self._parts_of if buffer.pairs else self._buffer)(buffer)
            self._record(record, path)

    def _made_here(self, record: Record, path: Path) -> Iterator[Buffer]:
        return (b for b in buffers_of(record) if self._scopes.get(b) == path)

    def _buffer(self, buffer: Buffer) -> SSAValue:
        if buffer not in self._buffers:
            self._buffers[buffer] = self.b.alloc(element_type(buffer.dtype), buffer.shape)
        return self._buffers[buffer]

    def _parts_of(self, buffer: Buffer) -> tuple[SSAValue, ...]:
        """Buffers of the real and of the imaginary parts of complex numbers that the program makes."""
        if buffer not in self._parts:
            element, shape = element_type(buffer.dtype), buffer.shape[:-1]
            self._parts[buffer] = tuple(self.b.alloc(element, shape) for _ in range(2))
        return self._parts[buffer]

    def _result(self, buffer: Buffer) -> SSAValue:
        """A buffer that is returned: parts side by side."""
        if not buffer.pairs:
            return self._buffer(buffer)
        whole = self.b.alloc(element_type(buffer.dtype), buffer.shape)
        shape = buffer.shape[:-1]
        strides = [s // buffer.base.itemsize for s in buffer.base.strides[:-1]]
        for number, part in enumerate(self._parts_of(buffer)):
            if (buffer, number) in self._written and 0 not in shape:
                view = self.b.view(whole, self.b.affine(number, {}), shape, strides)
                self.b.write(self.b.read(part), view)
        return whole

    def _note_written(self, view: View) -> None:
        if view.buffer.pairs:
            self._written.add((view.buffer, view.offset.settled.constant % 2))

    def _record(self, record: Record, path: Path) -> None:
        match record:
            case Read():
                self._values[record.value] = self.b.read(self._view(record.view))
            case Write():
                self._note_written(record.view)
                self.b.write(self._values[record.value], self._view(record.view))
            case Compute():
                operands = [self._values[v] for v in record.operands]
                found = self.b.ops(record.op, *operands, **dict(record.props))
                self._values.update(zip(record.values, found, strict=True))
            case Constant():
                self._values[record.value] = self.b.constant(record.array)
            case Counter():
                self._values[record.value] = self._number(record.index)
            case Call():
                self._call(record)
            case _:
                self._loop(record, path)

    def _loop(self, record: Record, path: Path) -> None:
        inside = (*path, id(record))
        if isinstance(record, For):
            with self.b.loop(record.lower, record.upper) as counter:
                self._counters[record.symbol] = counter
                self._records(record.body, inside)
            del self._counters[record.symbol]
        elif isinstance(record, While):
            with self.b.while_loop(self._buffer(record.condition)):
                self._records(record.body, inside)
        # Rounds inside may have used constants and allocations only: nothing else outlives them.

    def _call(self, record: Call) -> None:
        name = f"{record.task.__name__}_{len(self.functions)}"
        self.functions[name] = record.task
        views = [self._view(v) for v in record.views]
        for number in record.writes:
            self._note_written(record.views[number])
        self.b.call(name, views, list(record.reads), list(record.writes))

    def _terms(self, at: Affine) -> tuple[int, dict[SSAValue, int]]:
        """An index as the builder takes it; symbols of loops that stand alone are numbers."""
        constant, factors = at.constant, dict[SSAValue, int]()
        for symbol, c in at.terms:
            counter = self._counters.get(symbol)
            if counter is None:
                assert symbol.fixed
                constant += c * symbol.now
            else:
                factors[counter] = c
        return constant, factors

    def _view(self, view: View) -> SSAValue:
        if view.buffer.pairs:
            return self._part_view(view)
        offset = self.b.affine(*self._terms(view.offset))
        return self.b.view(self._buffer(view.buffer), offset, view.sizes, view.strides)

    def _part_view(self, view: View) -> SSAValue:
        """Of one part of complex numbers: all numbers of a view are even but for which part it is."""
        constant, factors = self._terms(view.offset)
        assert not any(n % 2 for n in (*factors.values(), *view.strides))
        offset = self.b.affine(constant // 2, {s: f // 2 for s, f in factors.items()})
        strides = [s // 2 for s in view.strides]
        return self.b.view(self._parts_of(view.buffer)[constant % 2], offset, view.sizes, strides)

    def _number(self, at: Affine) -> SSAValue:
        from irkit.dialects.graph import AddOp, MulOp

        constant, factors = self._terms(at)
        total = self.b.constant(np.array(constant, np.int64))
        for counter, factor in factors.items():
            scaled = self.b.constant(np.array(factor, np.int64))
            term = self.b(MulOp, self.b.number_of(counter), scaled)
            total = self.b(AddOp, term, total)
        return total


def _location(place: str) -> LocationAttr:
    file, _, line = place.rpartition(":")
    if not line.isdigit():
        return UnknownLoc()
    return FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(1))
