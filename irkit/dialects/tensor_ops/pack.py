"""`te.pack` and `te.prepacked`: the terms of products, laid out for tensor cores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from irkit.dialects import te
from irkit.dialects.packed_terms import FORMATS, ROWS, SCALED, is_scaled, packed
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError
from irkit.weights import Array


class Pack(TensorOpModel[te.PackOp]):
    """An rOperator of its own: a group of 8 rows reads those rows, a block the terms in it."""

    family = "pack"

    def kind(self, op: te.PackOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.PackOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        (x,) = operands
        return [packed(x, op.precision.data, op.depth.value.data, op.by_k)]

    def operand_boxes(
        self, op: te.PackOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        """Exact where the operand has two dimensions: what is read of others is all of them. Of rows that are
        scaled all terms are read."""
        (box,) = needed
        assert box is not None
        if tuple(tensor_type(op.x).get_shape()) != op.matrix:
            return [extents.whole(op.x)]
        along, width = int(op.by_k), tensor_type(op.y).get_shape()[-1]
        bounds = [(0, 0), (0, 0)]
        for d, part, size in ((along, box[0], width), (1 - along, box[2], ROWS)):
            bounds[d] = part[0] * size, min(part[1] * size, op.matrix[d])
        if op.precision.data == SCALED:
            bounds[along] = (0, op.matrix[along])
        return [tuple(bounds)]

    def why_no_prologue(self, op: te.PackOp, producer: Operation, cheap: bool) -> str | None:
        """Each element is read once."""
        return None


class Prepacked(TensorOpModel[te.PrepackedOp]):
    """An operand as it is. Who knows how reads the packed terms in its place, all of them."""

    cheap = True
    names_operand = True

    def kind(self, op: te.PrepackedOp) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: te.PrepackedOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        """Raises InvalidModelError where the second operand is not the first one packed. Of rows and terms
        that are zero throughout nothing is said: a task may have read a part of the first operand alone."""
        x, given = operands
        name, by_k = op.precision.data, op.terms.value.data == 1
        packing = name, op.depth.value.data, by_k
        if name == SCALED:
            return _held_to(is_scaled(x, given, *packing[1:]), op, x)
        want = packed(x, *packing)
        kind = np.uint32 if FORMATS[name].item_bytes == 4 else np.uint16
        if np.array_equal(want.view(kind), given.view(kind)):
            return [x]
        known = packed(_lines_with_numbers(x, *packing[1:]), *packing).any(axis=1, keepdims=True)
        return _held_to(_same(np.where(known, want, 0), np.where(known, given, 0)), op, x)

    def operand_boxes(
        self, op: te.PrepackedOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return [needed[0], extents.whole(op.packed)]

    def element(
        self, op: te.PrepackedOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        return printer.element(op.x, index)


def _held_to(right: bool, op: te.PrepackedOp, x: Array) -> Sequence[Array]:
    """`x`, whose packed terms are `right`, or else the error."""
    if not right:
        raise InvalidModelError(f"'{op.name}': its packed terms are not those of its operand")
    return [x]


def _lines_with_numbers(x: Array, depth: int, by_k: bool) -> Array:
    """1 where neither the row nor the column is zero throughout, else 0, laid out as `x` is."""
    matrix = x.reshape(-1, depth) if by_k else x.reshape(depth, -1)
    known = matrix != 0
    return np.logical_and.outer(known.any(axis=1), known.any(axis=0)).astype(np.float32)


def _same(want: Array, given: Array) -> bool:
    """Whether all are equal, or no number in both."""
    return np.array_equal(want.astype(np.float32), given.astype(np.float32), equal_nan=True)
