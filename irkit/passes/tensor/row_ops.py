"""What of the tensor level works on rows: their elements, sums along them, and numbers of each row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import (
    combiner,
    is_plain,
    is_projection,
    iterators,
    maps,
    of_scalars,
)
from irkit.dialects.rowwise import KINDS
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import tensor_type

_STARTS: Final = {"add": 0.0, "max": -math.inf, "min": math.inf}


@dataclass(frozen=True)
class Rows:
    """Rows of a shape: which ops are over their elements, over them, or sum along them."""

    shape: tuple[int, ...]

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of what there is one of for each row."""
        return self.shape[:-1]

    def has_elements(self, op: Operation) -> bool:
        """Whether an op gives each element of rows from those at its place, and from what broadcasts."""
        if not isinstance(op, linalg.GenericOp) or not is_plain(op):
            return False
        if tensor_type(op.results[0]).get_shape() != self.shape:
            return False
        return all(is_projection(m) for m in maps(op)[: len(op.inputs)])

    def sums(self, op: Operation) -> bool:
        """Whether an op sums along rows, from nothing on."""
        if not isinstance(op, linalg.GenericOp) or len(op.inputs) != 1 or len(op.results) != 1:
            return False
        rank, found = len(self.shape), combiner(op)
        if iterators(op) != [True] * (rank - 1) + [False] or found is None or found[0] not in KINDS:
            return False
        read, written = maps(op)
        whole = read == AffineMap.identity(rank) and written.results == read.results[:-1]
        if not whole or tensor_type(op.inputs[0]).get_shape() != self.shape:
            return False
        element = tensor_type(op.results[0]).element_type
        return element in (f32, f64) and of_scalars(op) and start_of(op) == _STARTS[found[0]]

    def is_same(self, op: Operation) -> bool:
        """Whether an op is elementwise over what there is one of for each row."""
        if isinstance(op, RESHAPES):
            shapes = {tensor_type(v).get_shape() for v in (op.src, op.result)}
            return shapes <= {self.lead, (*self.lead, 1)}
        if not isinstance(op, linalg.GenericOp) or not is_plain(op):
            return False
        shapes = {tensor_type(v).get_shape() for v in (*op.inputs, *op.results)}
        alike = {*maps(op)} == {AffineMap.identity(len(op.iterator_types))}
        return len(shapes) == 1 and shapes <= {self.lead, (*self.lead, 1)} and alike

    def reads_row(self, value: SSAValue, amap: AffineMap) -> bool:
        """Whether the elements of a row read the one number of it."""
        rank = len(self.shape)
        lead = AffineMap.identity(rank).results[:-1]
        shape = tensor_type(value).get_shape()
        if shape == self.lead:
            return amap.results == lead
        return shape == (*self.lead, 1) and amap.results[:-1] == lead


def start_of(op: linalg.GenericOp) -> float | None:
    """The number that a reduction starts from; None if it is no constant."""
    fill = op.outputs[0].owner
    value = fill.inputs[0].owner if isinstance(fill, linalg.FillOp) else None
    if not isinstance(value, arith.ConstantOp) or not isinstance(value.value, FloatAttr):
        return None
    return value.value.value.data


def summed_by(op: Operation) -> Rows | None:
    """The rows along which an op sums."""
    if not isinstance(op, linalg.GenericOp) or len(op.inputs) != 1:
        return None
    shape = tensor_type(op.inputs[0]).get_shape()
    return Rows(shape) if shape and Rows(shape).sums(op) else None
