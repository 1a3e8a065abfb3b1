"""`functionalise`: a program of arrays as a function of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects import affine, arith, memref, scf, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.context import weights_of
from irkit.dialects.bufferization import (
    MaterializeInDestinationOp,
    ToTensorOp,
    tensor_of_array,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.loops import while_op
from irkit.dialects.program import CallOp
from irkit.dialects.program.check import (
    arrays_read,
    arrays_written,
    result_names,
    written_arguments,
)
from irkit.dialects.program.views import StridedView, array_type, trips_of, view_of
from irkit.dialects.state import StatePair, set_state
from irkit.dialects.types import numpy_dtype
from irkit.errors import UnsupportedError
from irkit.passes.program.carried import drop_dead_values
from irkit.passes.program.decode import Box, decoded
from irkit.passes.program.emitter import Emitter
from irkit.passes.program.splitting.demands import line_of
from irkit.passes.program.versions import Contents
from irkit.weights import WeightStore

_VALUES = (GraphOp, arith.IndexCastOp, tensor.FromElementsOp, tensor.InsertSliceOp)
"""Ops that compute values of values."""
_GATHERED = 1 << 24
"""Elements that are picked one by one at most: each takes an index of 8 bytes."""


@dataclass(frozen=True)
class Functionalise(ModulePass):
    """Make values of arrays: every buffer is a chain of tensors, each write a new one.

    A function of arrays becomes one of tensors, at the graph level. Its arguments are the buffers; its
    results are what the views held that were returned, and then what every argument buffer that may be
    written holds in the end, each of which is paired with its argument in `irkit.state`. What a read needs
    of writes before it is found element by element: it reads what was written, or what lies under it where
    the write is elsewhere. A write that later ones cover is gone. Parts are `graph.slice` and
    `tensor.insert_slice`; in loops, whose place hangs on the variable, `tensor.extract_slice`. A view that is
    no box of its buffer under any shape (a diagonal, windows that overlap) is picked by constant indices.
    Loops carry the buffers that they write, a loop that asks also the one it reads there. What was allocated
    and never written is 0. Of a program with calls of the host there is none. Exact.

    ```mlir
    %tail = memref.reinterpret_cast %x to offset: [1], sizes: [7], strides: [1]
    %t = bufferization.to_tensor %tail
    %y = graph.neg %t
    bufferization.materialize_in_destination %y in writable %tail
    func.return
    ```
    becomes
    ```mlir
    %t = graph.slice %x {offsets = array<i64: 1>, sizes = array<i64: 7>, strides = array<i64: 1>}
    %y = graph.neg %t
    %r = tensor.insert_slice %y into %x[1] [7] [1]
    func.return %r
    ```
    """

    name = "functionalise"
    requires: ClassVar[tuple[str, ...]] = ("program",)
    produces: ClassVar[str] = "graph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        for function in list(op.ops):
            if isinstance(function, FuncOp) and _is_of_arrays(function):
                Rewriter.replace_op(function, functionalised(function, weights), [])


def _is_of_arrays(function: FuncOp) -> bool:
    return bool(function.body.blocks) and any(
        isinstance(v.type, MemRefType)
        for op in function.walk()
        for v in (*op.results, *function.body.block.args)
    )


def functionalised(function: FuncOp, weights: WeightStore) -> FuncOp:
    """The function of tensors that a function of arrays is. Raises UnsupportedError for calls of the host,
    loops that compute where they ask, views whose place moves that are no boxes, and arguments that are no
    arrays."""
    source = function.body.block
    for argument in source.args:
        if not isinstance(argument.type, MemRefType):
            raise UnsupportedError(
                f"@{function.sym_name.data}: argument {argument.index} is a {argument.type}: a function of "
                "arrays has buffers alone"
            )
    block = Block(arg_types=[tensor_of_array(array_type(a)) for a in source.args])
    for old, new in zip(source.args, block.args, strict=True):
        new.name_hint = old.name_hint
    walk = _Walk(Emitter(block, weights))
    for old, new in zip(source.args, block.args, strict=True):
        walk.contents[old] = Contents(array_type(old).get_shape(), new)
    walk.block(source)
    terminator = source.last_op
    assert isinstance(terminator, ReturnOp)
    written = written_arguments(function)
    returned = [walk.read(v) for v in terminator.operands]
    left = [walk.contents[source.args[n]].value(walk.emitter) for n in written]
    walk.emitter.add(ReturnOp(*returned, *left))
    types = [v.type for v in (*returned, *left)]
    made = FuncOp(
        function.sym_name.data,
        FunctionType.from_lists(list(block.arg_types), types),
        Region(block),
        function.sym_visibility,
    )
    made.location = function.location
    made.attributes.update(function.attributes)
    made.attributes["irkit.outputs"] = ArrayAttr([StringAttr(n) for n in result_names(function)])
    if written:
        set_state(made, [StatePair(n, len(returned) + i) for i, n in enumerate(written)])
    drop_dead_values(made)
    return made


class _Walk:
    """Goes over a function of arrays in the order of its effects."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.contents: dict[SSAValue, Contents] = {}
        self._values: dict[SSAValue, SSAValue] = {}

    def block(self, block: Block) -> None:
        """All ops of a block but the one that ends it."""
        for op in block.ops:
            if op is block.last_op and isinstance(op, ReturnOp | scf.YieldOp):
                return
            self.emitter.location = op.location
            if isinstance(op, _VALUES):
                self._copy(op)
            else:
                self._op(op)

    def _op(self, op: Operation) -> None:
        step = _STEPS.get(type(op))
        if isinstance(op, CallOp):
            at = f" at {line}" if (line := line_of(op)) else ""
            raise UnsupportedError(
                f"'program.call' of @{op.callee.string_value()}{at} is the host's: form-regions cuts the"
                " program there, and gives functions that can be made values of"
            )
        if step is None:
            raise UnsupportedError(f"'{op.name}' is no effect on arrays, nor a value")
        step(self, op)

    def _copy(self, op: Operation) -> None:
        known = {v: self._known(v) for v in op.operands}
        made = self.emitter.add(op.clone(known))
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
            self._values[old] = new

    def _known(self, value: SSAValue) -> SSAValue:
        return self.emitter.variables.get(value) or self._values[value]

    def constant(self, op: Operation) -> None:
        """A constant; indices are made where they are used."""
        if not isinstance(op.results[0].type, IndexType):
            self._copy(op)

    def view(self, op: Operation) -> None:
        """Views are no values."""

    def alloc(self, op: Operation) -> None:
        """A buffer of which nothing is known."""
        buffer = op.results[0]
        t = array_type(buffer)
        zeros = self.emitter.zeros(t.element_type, t.get_shape())
        self.contents[buffer] = Contents(t.get_shape(), zeros)

    def to_tensor(self, op: Operation) -> None:
        """What an array holds now."""
        assert isinstance(op, ToTensorOp)
        self._values[op.tensor] = self.read(op.memref)

    def read(self, array: SSAValue) -> SSAValue:
        """What an array holds."""
        view = view_of(array)
        contents = self.contents[view.buffer]
        if view.is_empty:
            element = array_type(array).element_type
            return self.emitter.constant(np.zeros(view.sizes, numpy_dtype(element)))
        box = decoded(view, contents.shape)
        if box is not None:
            return self.emitter.shown(contents.read(self.emitter, box.place), box)
        _check_picked(view, len_of=view.sizes)
        return self.emitter.gather(contents.value(self.emitter), view)

    def write(self, op: Operation) -> None:
        """A write of a whole buffer, or of a part."""
        assert isinstance(op, MaterializeInDestinationOp)
        view = view_of(op.dest)
        if view.is_empty:
            return
        contents, value = self.contents[view.buffer], self._values[op.source]
        box: Box | None = decoded(view, contents.shape)
        if box is not None:
            contents.write(self.emitter, self.emitter.unshown(value, box), box.place)
            return
        _check_picked(view, len_of=contents.shape)
        old = contents.value(self.emitter)
        contents.become(self.emitter.scatter(value, old, view))

    def loop(self, op: Operation) -> None:
        """A loop that carries the buffers that it writes."""
        assert isinstance(op, scf.ForOp)
        trips = trips_of(op)
        if not len(trips):
            return
        outer = self.emitter
        for buffer in self._touched(op, arrays_read):
            self.contents[buffer].settle(outer)
        carried = self._touched(op, arrays_written)
        starts = [self.contents[b].settle(outer) for b in carried]
        bounds = [outer.index(n) for n in (trips.start, trips.stop, trips.step)]
        body = Block(arg_types=[IndexType(), *(v.type for v in starts)])
        block, outer.block = outer.block, body
        outer.variables[op.body.block.args[0]] = body.args[0]
        body.args[0].name_hint = op.body.block.args[0].name_hint
        for buffer, argument in zip(carried, body.args[1:], strict=True):
            argument.name_hint = buffer.name_hint
            self.contents[buffer].become(argument)
        self.block(op.body.block)
        left = [self.contents[b].value(outer) for b in carried]
        outer.add(scf.YieldOp(*left))
        outer.block, outer.location = block, op.location
        first, end, by = bounds
        made = outer.add(scf.ForOp(first, end, by, starts, Region(body)))
        for buffer, result in zip(carried, made.results, strict=True):
            self.contents[buffer].become(result)

    def loop_while(self, op: Operation) -> None:
        """A loop that asks: it carries what it asks for, and the buffers that it writes."""
        assert isinstance(op, scf.WhileOp)
        outer = self.emitter
        flag = _asked_buffer(op)
        for buffer in self._touched(op, arrays_read):
            self.contents[buffer].settle(outer)
        carried = [flag, *(b for b in self._touched(op, arrays_written) if b is not flag)]
        starts = [self.contents[b].settle(outer) for b in carried]
        body = Block(arg_types=[v.type for v in starts])
        block, outer.block = outer.block, body
        for buffer, argument in zip(carried, body.args, strict=True):
            argument.name_hint = buffer.name_hint
            self.contents[buffer].become(argument)
        self.block(op.after_region.block)
        left = [self.contents[b].value(outer) for b in carried]
        outer.add(scf.YieldOp(*left))
        outer.block, outer.location = block, op.location
        made = outer.add(while_op(starts, 0, body))
        for buffer, result in zip(carried, made.results, strict=True):
            self.contents[buffer].become(result)

    def _touched(
        self, loop: Operation, arrays: Callable[[Operation], list[SSAValue]]
    ) -> list[SSAValue]:
        """Buffers from outside a loop that ops in it touch, in order."""
        found = (view_of(v).buffer for op in loop.walk() for v in arrays(op))
        return list(dict.fromkeys(b for b in found if b in self.contents))


def _asked_buffer(op: scf.WhileOp) -> SSAValue:
    """The buffer of one boolean that a loop reads before each turn."""
    inside = list(op.before_region.block.ops)
    kinds = (ToTensorOp, tensor.ExtractOp, scf.ConditionOp)
    if not op.operands and [type(inner) for inner in inside] == [*kinds]:
        read = inside[0]
        assert isinstance(read, ToTensorOp)
        view = view_of(read.memref)
        if view.buffer is read.memref and not array_type(read.memref).get_shape():
            return view.buffer
    raise UnsupportedError("'scf.while' that does more, where it asks, than to read a boolean")


def _check_picked(view: StridedView, len_of: Sequence[int]) -> None:
    """Raises UnsupportedError for a view whose elements cannot be picked one by one."""
    what = f"a view of {view.buffer.type} with sizes {list(view.sizes)} and strides {list(view.strides)}"
    if not view.offset.is_constant:
        raise UnsupportedError(f"{what} whose place moves with a loop, and that is no box")
    if int(np.prod(len_of)) > _GATHERED:
        raise UnsupportedError(f"{what}, which is no box, and too large to be picked by indices")


_STEPS: Mapping[type[Operation], Callable[[_Walk, Operation], None]] = {
    affine.ApplyOp: _Walk.view,
    arith.ConstantOp: _Walk.constant,
    memref.AllocOp: _Walk.alloc,
    memref.ReinterpretCastOp: _Walk.view,
    ToTensorOp: _Walk.to_tensor,
    MaterializeInDestinationOp: _Walk.write,
    scf.ForOp: _Walk.loop,
    scf.WhileOp: _Walk.loop_while,
}
