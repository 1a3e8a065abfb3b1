"""Slices at moving places whose elements do not lie side by side, as ops on whole tensors.

What is read is gathered: as many elements as the slice has. What is written is a choice, element by element,
between the slice and what was there, which updates the tensor in place; each element of it is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import (
    AddOp,
    AndOp,
    CompareOp,
    DivOp,
    GatherOp,
    GraphOp,
    ModOp,
    ReshapeOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.loop_places import Affine, SliceOp, first_byte, moves, offsets_of, why_no_run
from irkit.dialects.types import int_array, ints, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.loops.numbers import constant_numbers

Number = Callable[[Affine, Operation], SSAValue]
"""A place as a tensor of one i64, made before an op."""


def gather_scattered(op: SliceOp, number: Number) -> None:
    """Replace a moving slice that is no run of bytes; any other stays. Raises UnsupportedError for sizes or
    steps that are computed, or a slice that leaves its tensor."""
    if not moves(op) or why_no_run(op) is None:
        return
    if op.sizes or op.strides:
        raise UnsupportedError(f"'{op.name}' of a size or step that is computed")
    first_byte(op)
    if isinstance(op, tensor.ExtractSliceOp):
        _gather(op, number)
    else:
        _choose(op, number)


class _Emitter:
    """Inserts ops before one."""

    def __init__(self, before: Operation) -> None:
        self.before = before

    def __call__(self, op: Operation) -> SSAValue:
        Rewriter.insert_op(op, InsertPoint.before(self.before))
        return op.results[0]

    def numbers(self, values: list[int]) -> SSAValue:
        """A constant row of i64."""
        return self(constant_numbers(np.array(values, np.int64)))

    def reshaped(self, value: SSAValue, shape: list[int]) -> SSAValue:
        """A value in another shape."""
        if list(tensor_type(value).get_shape()) == shape:
            return value
        return self(ReshapeOp.make([value], {"shape": int_array(shape)}))

    def in_steps(self, op: type[GraphOp], value: SSAValue, step: int) -> SSAValue:
        """Whole numbers divided by a step, or what is left over."""
        return value if step == 1 else self(op.make([value, self.numbers([step])], {}))

    def gathered(self, value: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """Elements of a value along an axis."""
        return self(GatherOp.make([value, indices], {"axis": IntegerAttr(axis, i64)}))


def _gather(op: tensor.ExtractSliceOp, number: Number) -> None:
    emit, value = _Emitter(op), op.source
    sizes, steps = ints(op.static_sizes), ints(op.static_strides)
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        # Anew for each: loops become others as they carry their numbers.
        place = offsets_of(op)[axis]
        taken = [step * n for n in range(size)]
        if not place.terms:
            whole = tensor_type(value).get_shape()[axis]
            if (place.constant, size) != (0, whole):
                indices = emit.numbers([place.constant + n for n in taken])
                value = emit.gathered(value, indices, axis)
            continue
        indices = emit(AddOp.make([number(place, op), emit.numbers(taken)], {}))
        value = emit.gathered(value, indices, axis)
    shape = list(tensor_type(op.result).get_shape())
    op.result.replace_all_uses_with(emit.reshaped(value, shape))
    Rewriter.erase_op(op)


def _choose(op: tensor.InsertSliceOp, number: Number) -> None:
    emit, sizes = _Emitter(op), ints(op.static_sizes)
    extents = list(tensor_type(op.dest).get_shape())
    steps = ints(op.static_strides)
    if min(steps, default=1) < 1:
        raise UnsupportedError(f"'{op.name}' at a place that hangs on a loop: it goes backwards")
    if math.prod(sizes) == 0:
        raise UnsupportedError(f"'{op.name}' of no elements")
    value, mask = emit.reshaped(op.source, sizes), None
    for axis, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
        place = offsets_of(op)[axis]
        if size == extent:
            continue
        rows = emit.numbers(list(range(extent)))
        # How far behind the slice's begin each row is: inside it from 0 to its last, at every step.
        behind = emit(SubOp.make([rows, number(place, op)], {}))
        if size > 1:
            value = emit.gathered(value, emit.in_steps(DivOp, behind, steps[axis]), axis)
        inside = _inside(emit, behind, (size - 1) * steps[axis] + 1)
        if size > 1 and steps[axis] > 1:
            between = emit.in_steps(ModOp, behind, steps[axis])
            inside = emit(AndOp.make([inside, _inside(emit, between, 1)], {}))
        shape = [extent if d == axis else 1 for d in range(len(extents))]
        inside = emit.reshaped(inside, shape)
        mask = inside if mask is None else emit(AndOp.make([mask, inside], {}))
    if mask is None:
        raise UnsupportedError(f"'{op.name}' of a whole tensor at a moving place")
    op.result.replace_all_uses_with(emit(WhereOp.make([mask, value, op.dest], {})))
    Rewriter.erase_op(op)


def _inside(emit: _Emitter, behind: SSAValue, size: int) -> SSAValue:
    """Where 0 <= behind < size."""
    if size == 1:
        return emit(CompareOp.make([behind, emit.numbers([0])], {"predicate": StringAttr("eq")}))
    low = emit(CompareOp.make([behind, emit.numbers([0])], {"predicate": StringAttr("ge")}))
    high = emit(CompareOp.make([behind, emit.numbers([size])], {"predicate": StringAttr("lt")}))
    return emit(AndOp.make([low, high], {}))
