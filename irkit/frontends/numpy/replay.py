"""A function of values, at the graph level, appended to a trace: ops are recorded, loops are loops of
buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import FileLineColLoc, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.constants import constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.loops import asked_of, body_of
from irkit.dialects.program.views import trips_of
from irkit.dialects.segments import segment_of, unmarked
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.custom import CustomCallOp, called
from irkit.frontends.numpy.places import at_place, in_segment, user_place
from irkit.frontends.numpy.recorder import Recorder, recorder
from irkit.frontends.numpy.records import Buffer, For, Record, Value, View, While
from irkit.weights import WeightStore


def replay(main: FuncOp, weights: WeightStore, given: Sequence[Value]) -> list[Value]:
    """What `main` returns of `given`, values of the trace at hand. Raises UnsupportedError for ops that a
    trace cannot have."""
    walk = _Replay(recorder(), weights)
    return walk.block(main.body.block, given)


class _Replay:
    def __init__(self, r: Recorder, weights: WeightStore) -> None:
        self.r, self.weights = r, weights
        self.values: dict[SSAValue, Value] = {}
        self.indices: dict[SSAValue, Affine] = {}

    def block(self, block: Block, given: Sequence[Value]) -> list[Value]:
        """The operands of the terminator."""
        self.values.update(zip(block.args[-len(given) :] if given else (), given, strict=True))
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return [self.values[v] for v in op.operands]
            self._op(op)
        raise InvalidModelError("a block without terminator")

    def _op(self, op: Operation) -> None:
        with at_place(_place(op)), in_segment(segment_of(op.location)):
            self._traced(op)

    def _traced(self, op: Operation) -> None:
        if isinstance(op, CustomCallOp):
            found = called(op, [self.values[v] for v in op.operands])
            self.values.update(zip(op.results, found, strict=True))
        elif isinstance(op, GraphOp):
            made = self.r.ops(type(op), *(self.values[v] for v in op.operands), **op.properties)
            self.values.update(zip(op.results, made, strict=True))
        elif (step := _STEPS.get(type(op))) is not None:
            step(self, op)
        else:
            raise UnsupportedError(f"'{op.name}' cannot be part of a trace")

    def constant(self, op: Operation) -> None:
        """A tensor or an index."""
        assert isinstance(op, arith.ConstantOp)
        if isinstance(op.value, IntegerAttr):
            self.indices[op.result] = Affine(op.value.value.data)
            return
        array = constant_array(op.result, self.weights)
        if array is None:
            raise InvalidModelError(f"the weights hold no bytes for {op.value}")
        self.values[op.result] = self.r.constant(array)

    def index(self, op: Operation) -> None:
        """Arithmetic of indices: one factor of a product is a constant."""
        first, *rest = (self.indices[v] for v in op.operands)
        made = first
        if isinstance(op, arith.MuliOp):
            (second,) = rest
            scaled, by = (first, second) if not second.terms else (second, first)
            made = scaled.times(by.constant)
        elif rest:
            made = first.plus(rest[0], -1 if isinstance(op, arith.SubiOp) else 1)
        self.indices[op.results[0]] = made

    def number(self, op: Operation) -> None:
        """A loop's variable as a tensor."""
        (index,) = op.operands
        self.values[op.results[0]] = self.r.counter(self.indices[index])

    def _place(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, buffer: Buffer) -> View:
        offset, moving = Affine(0), iter(op.offsets)
        strides = [s // buffer.dtype.itemsize for s in buffer.base.strides]
        for start, stride in zip(ints(op.static_offsets), strides, strict=True):
            at = self.indices[next(moving)] if start == DYNAMIC else Affine(start)
            offset = offset.plus(at.times(stride))
        steps = [s * t for s, t in zip(strides, ints(op.static_strides), strict=True)]
        return View(buffer, offset, tuple(ints(op.static_sizes)), tuple(steps))

    def _kept(self, value: Value) -> Buffer:
        """A new buffer that holds a value."""
        buffer = self.r.alloc(value.shape, value.dtype)
        self.r.write(value, _whole(buffer))
        return buffer

    def extract(self, op: Operation) -> None:
        """Part of a value."""
        assert isinstance(op, tensor.ExtractSliceOp)
        buffer = self._kept(self.values[op.source])
        part = self.r.read(self._place(op, buffer))
        self.values[op.result] = self.r.reshape(part, tensor_type(op.result).get_shape())

    def insert(self, op: Operation) -> None:
        """A value with another in it."""
        assert isinstance(op, tensor.InsertSliceOp)
        buffer = self._kept(self.values[op.dest])
        view = self._place(op, buffer)
        self.r.write(self.r.reshape(self.values[op.source], view.sizes), view)
        self.values[op.result] = self.r.read(_whole(buffer))

    def loop(self, op: Operation) -> None:
        """A loop, that carries its values in buffers."""
        assert isinstance(op, scf.ForOp)
        rounds = trips_of(op)
        buffers = [self._kept(self.values[v]) for v in op.iter_args]
        if len(rounds):
            self._rounds(op, rounds, buffers)
        for result, buffer in zip(op.results, buffers, strict=True):
            self.values[result] = self.r.read(_whole(buffer))

    def asking(self, op: Operation) -> None:
        """A loop that goes on as long as a value that it carries says so."""
        assert isinstance(op, scf.WhileOp)
        buffers = [self._kept(self.values[v]) for v in op.arguments]
        inside = self._round(body_of(op), buffers)
        self.r.records.append(While(user_place(), buffers[asked_of(op)], inside))
        for result, buffer in zip(op.results, buffers, strict=True):
            self.values[result] = self.r.read(_whole(buffer))

    def _round(self, body: Block, buffers: Sequence[Buffer]) -> list[Record]:
        """What a round does, of what it finds in buffers."""
        outer, self.r.records = self.r.records, []
        try:
            begun = [self.r.read(_whole(b)) for b in buffers]
            left = self.block(body, begun)
            for value, buffer in zip(left, buffers, strict=True):
                self.r.write(value, _whole(buffer))
            return self.r.records
        finally:
            self.r.records = outer

    def _rounds(self, op: scf.ForOp, rounds: range, buffers: Sequence[Buffer]) -> None:
        symbol = LoopSymbol(0, len(rounds) - 1)
        self.indices[op.body.block.args[0]] = Affine.of(rounds.start, {symbol: rounds.step})
        inside = self._round(op.body.block, buffers)
        self.r.records.append(For(user_place(), symbol, 0, len(rounds), inside))
        symbol.fix(len(rounds) - 1)


def _place(op: Operation) -> str | None:
    """Where the user's code asked for an op."""
    at = unmarked(op.location)
    if not isinstance(at, FileLineColLoc):
        return None
    return f"{at.filename.data}:{at.line.data}"


def _whole(buffer: Buffer) -> View:
    strides = tuple(s // buffer.dtype.itemsize for s in buffer.base.strides)
    return View(buffer, Affine(0), buffer.shape, strides)


_STEPS: Mapping[type[Operation], Callable[[_Replay, Operation], None]] = {
    arith.AddiOp: _Replay.index,
    arith.ConstantOp: _Replay.constant,
    arith.IndexCastOp: _Replay.index,
    arith.MuliOp: _Replay.index,
    arith.SubiOp: _Replay.index,
    scf.ForOp: _Replay.loop,
    scf.WhileOp: _Replay.asking,
    tensor.ExtractSliceOp: _Replay.extract,
    tensor.FromElementsOp: _Replay.number,
    tensor.InsertSliceOp: _Replay.insert,
}
