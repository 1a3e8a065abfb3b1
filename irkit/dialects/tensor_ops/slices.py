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
from irkit.dialects.tensor_ops.intervals import strided
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
    """It stands at no level of irkit's; modules of others are interpreted."""

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
