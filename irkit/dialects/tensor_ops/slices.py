"""`tensor.extract_slice` and `tensor.insert_slice`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from irkit.dialects.tensor_ops.dynamic import completed
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.tensor_ops.intervals import clipped, strided
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.errors import UnsupportedError
from irkit.weights import Array

SliceOp = tensor.ExtractSliceOp | tensor.InsertSliceOp


def _points(op: SliceOp, dynamic: list[Array]) -> tuple[tuple[Array, ...], list[int]]:
    """Where a slice lies, as indices that NumPy combines, and its size in each dimension."""
    offsets, sizes, steps = (
        ints(a) for a in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    first, second = offsets.count(DYNAMIC), offsets.count(DYNAMIC) + sizes.count(DYNAMIC)
    starts = completed(offsets, dynamic[:first])
    counts = completed(sizes, dynamic[first:second])
    strides = completed(steps, dynamic[second:])
    axes = [o + s * np.arange(n) for o, n, s in zip(starts, counts, strides, strict=True)]
    return np.ix_(*axes), counts


def _moved(index: str, offset: int, step: int) -> str:
    """The index in the source."""
    scaled = index if step == 1 else f"{index} * {step}"
    if offset == 0:
        return scaled
    return str(offset) if scaled == "0" else f"{scaled} + {offset}"


class ExtractSlice(TensorOpModel[tensor.ExtractSliceOp]):
    """A view where it is one run of its source's bytes."""

    def kind(self, op: tensor.ExtractSliceOp) -> Kind:
        shape = tensor_type(op.source).get_shape()
        sizes, steps = ints(op.static_sizes), ints(op.static_strides)
        if len(sizes) != len(shape) or any(s != 1 for s in steps) or DYNAMIC in shape:
            return Kind.LIGHT
        cut = [d for d, (s, n) in enumerate(zip(sizes, shape, strict=True)) if s != n]
        one_run = not cut or all(sizes[d] == 1 for d in range(cut[-1]))
        return Kind.VIEW if one_run else Kind.LIGHT

    def evaluate(
        self, op: tensor.ExtractSliceOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        source, *dynamic = operands
        points, sizes = _points(op, dynamic)
        shape = tensor_type(op.result).get_shape()
        # A result of lower rank leaves out dimensions of size 1; the batch leads, if there is one.
        if len(shape) != len(sizes):
            sizes = completed(shape, [np.array(sizes[0])])
        return [source[points].reshape(sizes)]

    def operand_boxes(
        self, op: tensor.ExtractSliceOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        offsets, steps = ints(op.static_offsets), ints(op.static_strides)
        read = extents.whole(op.source)
        if len(box) == len(offsets):
            read = tuple(
                strided(interval, o, s) for interval, o, s in zip(box, offsets, steps, strict=True)
            )
        return [read, *(None for _ in op.operands[1:])]

    def element(
        self, op: tensor.ExtractSliceOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        if op.offsets or op.strides:
            raise UnsupportedError("emission of a tensor.extract_slice at computed places")
        if len(index) != tensor_type(op.source).get_num_dims():
            raise UnsupportedError("emission of a rank-reducing tensor.extract_slice")
        offsets, steps = ints(op.static_offsets), ints(op.static_strides)
        moved = [
            printer.name(_moved(i, o, s)) for i, o, s in zip(index, offsets, steps, strict=True)
        ]
        return printer.element(op.source, tuple(moved))


class InsertSlice(TensorOpModel[tensor.InsertSliceOp]):
    """Where state is updated in place, what lies outside is not touched."""

    def kind(self, op: tensor.InsertSliceOp) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: tensor.InsertSliceOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        source, dest, *dynamic = operands
        points, sizes = _points(op, dynamic)
        result = dest.copy()
        result[points] = source.reshape(sizes)
        return [result]

    def operand_boxes(
        self, op: tensor.InsertSliceOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        read = extents.whole(op.source)
        if not _moves(op) and len(read) == len(box):
            places = zip(box, ints(op.static_offsets), ints(op.static_strides), read, strict=True)
            read = tuple(
                clipped((-((o - a) // s), -((o - b) // s)), n) for (a, b), o, s, (_, n) in places
            )
        return [read, box, *(None for _ in op.operands[2:])]

    def element(
        self, op: tensor.InsertSliceOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        guards = insertion_guards(op, index)
        if not guards:
            return printer.element(op.source, inserted_index(op, printer, index))
        t = tensor_type(result)
        variable = printer.variable(printer.number(0, t.element_type), t.element_type)
        printer.line(f"if {' and '.join(guards)}:")
        branch = printer.branch()
        inner = inserted_index(op, branch, index)
        branch.line(f"{variable} = {branch.element(op.source, inner)}")
        printer.line("else:")
        branch = printer.branch()
        branch.line(f"{variable} = {branch.element(op.dest, index)}")
        return variable


def _moves(op: SliceOp) -> bool:
    """Whether a slice lies at places that are computed."""
    return bool(op.offsets or op.sizes or op.strides)


def insertion_guards(op: tensor.InsertSliceOp, index: Index) -> list[str]:
    """What must hold for what stands at `index` of the result to be inserted, by dimension, the steps of a dimension
    last. Raises UnsupportedError for an insertion at computed places, or of lower rank."""
    if _moves(op):
        raise UnsupportedError("emission of a tensor.insert_slice at computed places")
    shape = tensor_type(op.result).get_shape()
    if len(shape) != tensor_type(op.source).get_num_dims() or DYNAMIC in shape:
        raise UnsupportedError("emission of a tensor.insert_slice of lower rank, or into the batch")
    guards: list[str] = []
    sizes = ints(op.static_sizes)
    for d, (offset, step) in enumerate(
        zip(ints(op.static_offsets), ints(op.static_strides), strict=True)
    ):
        last = offset + (sizes[d] - 1) * step
        if offset > 0:
            guards.append(f"{index[d]} >= {offset}")
        if last + 1 < shape[d]:
            guards.append(f"{index[d]} < {last + 1}")
        if step > 1:
            moved = f"({index[d]} - {offset})" if offset else index[d]
            guards.append(f"{moved} % {step} == 0")
    return guards


def inserted_index(op: tensor.InsertSliceOp, printer: ElementText, index: Index) -> Index:
    """The index in the source of what stands at `index` of the result, where the guards hold."""
    places = zip(index, ints(op.static_offsets), ints(op.static_strides), strict=True)
    return tuple(
        printer.quotient(printer.name(f"{i} - {offset}" if offset else i), step)
        for i, offset, step in places
    )
