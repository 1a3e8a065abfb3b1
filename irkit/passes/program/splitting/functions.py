"""Functions of arrays: what computes a chunk, what goes before all chunks, and what after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from irkit.dialects.bufferization import Array, MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.graph import AddOp, DivOp, MaxOp, MinOp, MulOp, ReduceOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.program.views import buffer_type
from irkit.dialects.properties import attribute
from irkit.dialects.types import ints, numpy_dtype, tensor_type
from irkit.passes.program.splitting.copying import RowCopy, shape_of_rows
from irkit.passes.program.splitting.demands import Demands
from irkit.passes.program.splitting.rules import shape_of
from irkit.passes.program.splitting.sweeps import Ended, Merge, SplitPlan, Sweep, Write
from irkit.weights import WeightStore

_COMBINED: dict[str, type[GraphOp]] = {
    "sum": AddOp,
    "mean": AddOp,
    "prod": MulOp,
    "max": MaxOp,
    "min": MinOp,
}


@dataclass(frozen=True)
class Chunk:
    """What a sweep's function takes, in this order: rows of arguments, arguments and given values as a whole,
    what is merged so far, then arrays that it writes: what is merged then, and rows."""

    rows: tuple[BlockArgument, ...]
    wholes: tuple[SSAValue, ...]
    merges: tuple[Merge, ...]
    writes: tuple[Write, ...]


def chunk_of(plan: SplitPlan, sweep: Sweep) -> Chunk:
    """What the function of a sweep's chunk takes."""
    arguments = plan.function.body.block.args
    wholes = [a for a in arguments if a in sweep.demands.wholes]
    return Chunk(
        tuple(a for a in arguments if a in sweep.demands.bands),
        (*wholes, *sweep.demands.given),
        tuple(sweep.merges),
        tuple(sweep.writes),
    )


Placed = Callable[[Array], Array]
"""The type of an array where the function runs."""


def chunk_types(sweep: Sweep, chunk: Chunk, units: int) -> list[Array]:
    """The types of its arguments, for so many units."""
    bands = sweep.demands.bands
    return [
        *(_rows_type(a, shape_of_rows(a, bands[a], units)) for a in chunk.rows),
        *(array_of(v) for v in chunk.wholes),
        *(array_of(m.op.y) for m in chunk.merges),
        *(array_of(m.op.y) for m in chunk.merges),
        *(_rows_type(w.value, write_shape(w, units)) for w in chunk.writes),
    ]


def write_shape(write: Write, units: int) -> tuple[int, ...]:
    """The rows that so many units of a write are."""
    shape = list(write.shape)
    shape[write.axis] = write.band.count(units)
    return tuple(shape)


def _rows_type(value: SSAValue, shape: Sequence[int]) -> Array:
    return buffer_type(tensor_type(value).element_type, shape)


def array_of(value: SSAValue) -> Array:
    """The type of an array that holds a value."""
    return _rows_type(value, shape_of(value))


def chunk_function(
    name: str, plan: SplitPlan, sweep: Sweep, units: int, weights: WeightStore, placed: Placed
) -> FuncOp:
    """The function that computes `units` units of a sweep."""
    chunk = chunk_of(plan, sweep)
    made = _Function(name, [placed(t) for t in chunk_types(sweep, chunk, units)])
    copy = RowCopy(made.block, weights, sweep.demands, units)
    arguments = iter(made.block.args)
    for value in chunk.rows:
        copy.rows[value] = made.read(next(arguments), value)
    for value in chunk.wholes:
        copy.wholes[value] = made.read(next(arguments), value)
    sums = [next(arguments) for _ in chunk.merges]
    summed = [next(arguments) for _ in chunk.merges]
    targets = list(arguments)
    for op in plan.function.body.block.ops:
        if not isinstance(op, ReturnOp):
            copy.copy(op)
    for merge, known, at in zip(chunk.merges, sums, summed, strict=True):
        made.write(copy.emitter.add, _merged(copy, merge, known), at)
    for write, target in zip(chunk.writes, targets, strict=True):
        made.write(copy.emitter.add, _written(copy, write), target)
    return made.finish(plan.function)


class _Function:
    """A function of arrays that is being made."""

    def __init__(self, name: str, types: Sequence[Array]) -> None:
        self.name, self.block = name, Block(arg_types=list(types))

    def read(self, array: SSAValue, hint: SSAValue) -> SSAValue:
        """What an argument holds."""
        array.name_hint = hint.name_hint
        op = ToTensorOp(array)
        self.block.add_op(op)
        return op.tensor

    def write(self, add: Callable[[Operation], object], value: SSAValue, array: SSAValue) -> None:
        """Write to an argument."""
        add(MaterializeInDestinationOp(value, array))

    def finish(self, like: FuncOp) -> FuncOp:
        """The function, which returns nothing."""
        self.block.add_op(ReturnOp())
        types = FunctionType.from_lists(list(self.block.arg_types), [])
        function = FuncOp(self.name, types, Region(self.block))
        function.location = like.location
        return function


def _merged(copy: RowCopy, merge: Merge, array: SSAValue) -> SSAValue:
    """The part of a chunk put to what is merged so far."""
    op, kind = merge.op, merge.op.kind.data
    properties = {**op.properties, "kind": attribute("sum" if kind == "mean" else kind)}
    part = ReduceOp.make([copy.part(op.x, merge.band)], properties)
    copy.emitter.location = op.location
    copy.emitter.add(part)
    known = copy.emitter.add(ToTensorOp(array)).results[0]
    return copy.emitter.graph(_COMBINED[kind], known, part.results[0])


def _written(copy: RowCopy, write: Write) -> SSAValue:
    value, insert = copy.part(write.value, write.band), write.insert
    if insert is None or write.fills_rows:
        return value
    under = copy.part(insert.dest, write.under)
    return copy.inserted(insert, value, under, write.axis)


def identity(op: ReduceOp) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """What a reduction of no elements is."""
    dtype = numpy_dtype(tensor_type(op.y).element_type)
    kind = op.kind.data
    if kind in ("max", "min"):
        low = kind == "max"
        if np.issubdtype(dtype, np.integer):
            info = np.iinfo(dtype)
            return np.full((), info.min if low else info.max, dtype)
        return np.full((), -np.inf if low else np.inf).astype(dtype)
    return np.full((), 1 if kind == "prod" else 0).astype(dtype)


def begin_function(
    name: str, plan: SplitPlan, merges: Sequence[Merge], weights: WeightStore
) -> FuncOp:
    """The function of the host that sets what is merged to what it is of no rows."""
    made = _Function(name, [array_of(m.op.y) for m in merges])
    copy = RowCopy(made.block, weights, Demands(), 1)
    for merge, array in zip(merges, made.block.args, strict=True):
        value = copy.emitter.constant(identity(merge.op))
        value = copy.emitter.expanded(value, shape_of(merge.op.y))
        made.write(copy.emitter.add, value, array)
    return made.finish(plan.function)


def end_function(
    name: str, plan: SplitPlan, ends: Sequence[Ended], weights: WeightStore
) -> tuple[FuncOp, list[Merge], list[BlockArgument]]:
    """The function of the host that computes `ends`; what it takes: merged reductions, arguments as a
    whole, then arrays for what it computes."""
    merges = list({m.op: m for end in ends for m in end.merges}.values())
    wholes = list(dict.fromkeys(a for end in ends for a in end.arguments))
    values = [end.value for end in ends]
    types = [array_of(v) for v in (*(m.op.y for m in merges), *wholes, *values)]
    made = _Function(name, types)
    copy = RowCopy(made.block, weights, Demands(), 1)
    inputs = iter(made.block.args)
    for merge in merges:
        copy.wholes[merge.op.y] = _meant(copy, merge, made.read(next(inputs), merge.op.y))
    for value in wholes:
        copy.wholes[value] = made.read(next(inputs), value)
    needed = _needed(values, set(copy.wholes))
    for op in plan.function.body.block.ops:
        if op in needed:
            copy.whole(op)
    for value, array in zip(values, inputs, strict=True):
        made.write(copy.emitter.add, copy.wholes[value], array)
    return made.finish(plan.function), merges, wholes


def _meant(copy: RowCopy, merge: Merge, value: SSAValue) -> SSAValue:
    """A merged reduction: of a mean, the sum is divided."""
    if merge.op.kind.data != "mean":
        return value
    count = int(np.prod([shape_of(merge.op.x)[a] for a in ints(merge.op.axes)]))
    dtype = numpy_dtype(tensor_type(merge.op.y).element_type)
    return copy.emitter.graph(DivOp, value, copy.emitter.constant(np.full((), count).astype(dtype)))


def _needed(values: Sequence[SSAValue], known: set[SSAValue]) -> set[Operation]:
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        op = value.owner
        if value in known or not isinstance(op, Operation) or op in found:
            continue
        found.add(op)
        pending += op.operands
    return found
