"""`tensor.collapse_shape` and `tensor.expand_shape`: the same elements under another index."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from irkit.dialects.reassociation import groups_of
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
from irkit.dialects.types import ints, tensor_type
from irkit.weights import Array

ReshapeOp = tensor.CollapseShapeOp | tensor.ExpandShapeOp
RESHAPES = (tensor.CollapseShapeOp, tensor.ExpandShapeOp)


class Reshape(TensorOpModel[ReshapeOp]):
    """Between launches it is another shape of the same bytes."""

    def kind(self, op: ReshapeOp) -> Kind:
        return Kind.VIEW

    def same_bytes(self, op: ReshapeOp) -> SSAValue:
        return op.src

    def evaluate(
        self, op: ReshapeOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        source, *sizes = operands
        if isinstance(op, tensor.ExpandShapeOp):
            return [source.reshape(completed(ints(op.static_output_shape), sizes))]
        groups = groups_of(op)
        shape = [1] * len(groups)
        for number, group in enumerate(groups):
            for d in group:
                shape[number] *= source.shape[d]
        return [source.reshape(shape)]

    def operand_boxes(
        self, op: ReshapeOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        """Exact where the leading dimension is kept; all of every other dimension."""
        (box,) = needed
        full = extents.whole(op.src)
        same_lead = full and box and full[0] == extents.whole(op.result)[0]
        read = (box[0], *full[1:]) if box and same_lead else full
        return [read, *(None for _ in op.operands[1:])]

    def element(self, op: ReshapeOp, printer: ElementText, result: SSAValue, index: Index) -> str:
        shape, to = tensor_type(result).get_shape(), tensor_type(op.src).get_shape()
        return printer.element(op.src, printer.reshaped(index, shape, to))


def groups_of_shapes(shape: Sequence[int], to: Sequence[int]) -> list[tuple[slice, slice]]:
    """The smallest runs of dimensions of two shapes that have as many elements; what stands before one
    that is not known is one run with it."""
    found: list[tuple[slice, slice]] = []
    i, j = len(shape), len(to)
    while i or j:
        ends = i, j
        i, j = max(i - 1, 0), max(j - 1, 0)
        while (mine := _elements(shape[i : ends[0]])) != (its := _elements(to[j : ends[1]])):
            if mine is None or its is None or not (i if mine < its else j):
                i = j = 0
                break
            i, j = (i - 1, j) if mine < its else (i, j - 1)
        if mine is None:
            i = j = 0
        found.append((slice(i, ends[0]), slice(j, ends[1])))
    return found[::-1]


def _elements(sizes: Sequence[int]) -> int | None:
    """None where it is not known, or nothing."""
    return math.prod(sizes) if all(size > 0 for size in sizes) else None
