"""`pads-to-concat`: sums of what is padded with zeros, each to places of its own, as parts side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, f64, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.graph import AddOp, ConcatOp, PadOp
from irkit.dialects.types import int_array, ints, is_float, numpy_dtype, tensor_type
from irkit.passes.graph.join_product_sums import terms_from_right
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore


@dataclass(frozen=True)
class Part:
    """What is padded, and which places along the axis it has."""

    value: SSAValue
    first: int
    last: int


def parts_of(op: AddOp) -> tuple[int, list[Part]] | str:
    """The axis along which a sum puts parts side by side, and these in order; or why it is no such sum."""
    pads: list[PadOp] = []
    for term in terms_from_right(op):
        pad = term.owner
        if not isinstance(pad, PadOp) or not _pads_with_zeros(pad) or term.type != op.y.type:
            return "a term is not padded with zeros"
        pads.append(pad)
    padded = {d for pad in pads for d in _padded(pad)}
    if len(padded) != 1:
        return "terms are not padded along one axis"
    (axis,) = padded
    parts = sorted((_part(pad, axis) for pad in pads), key=lambda part: part.first)
    if any(part.first == part.last for part in parts):
        return "a term has no elements"
    if any(part.last > behind.first for part, behind in pairwise(parts)):
        return "terms overlap"
    return axis, parts


def _pads_with_zeros(op: PadOp) -> bool:
    """Whether what is added to the others is 0.0, which is not -0.0."""
    value = op.value.value.data
    return value == 0 and math.copysign(1, value) > 0


def _padded(op: PadOp) -> list[int]:
    return [
        d for d, sizes in enumerate(zip(ints(op.low), ints(op.high), strict=True)) if any(sizes)
    ]


def _part(op: PadOp, axis: int) -> Part:
    first = ints(op.low)[axis]
    return Part(op.x, first, first + tensor_type(op.x).get_shape()[axis])


@dataclass
class SumOfPads(Rule):
    """pad(x) + pad(y) = concat(x, y) + 0, where no place has both"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /):
        found = parts_of(op)
        if isinstance(found, str):
            return self.no_match(op, "{}", found)
        users = [use.operation for use in op.y.uses]
        if len(users) == 1 and isinstance(users[0], AddOp) and _sums_more(users[0], op):
            return self.no_match(op, "it is part of a sum that is one too")
        axis, parts = found
        made: list[Operation] = []
        shape = tensor_type(op.y).get_shape()
        # Parts that lie behind one another in memory are computed where they lie, with the zero; others are
        # read from where they are, and nothing should wait for one before the next is read.
        behind = all(size == 1 for size in shape[:axis])
        # What lies between two parts comes with the one before it, what lies before all with the first.
        ends = [*(part.first for part in parts[1:]), shape[axis]]
        starts = [0, *ends[:-1]]
        values: list[SSAValue] = []
        for part, start, end in zip(parts, starts, ends, strict=True):
            value = self._and_zero(part.value, made) if behind else part.value
            values.append(_filled(value, axis, part.first - start, end - part.last, made))
        made.append(ConcatOp.make(values, {"axis": IntegerAttr(axis, i64)}))
        y = made[-1].results[0]
        rewriter.replace(op, made, [y if behind else self._and_zero(y, made)])

    def _and_zero(self, value: SSAValue, made: list[Operation]) -> SSAValue:
        """`value + 0.0`, which is what the sum has there: of -0.0 it is 0.0."""
        element = tensor_type(value).element_type
        if not is_float(element):
            return value
        made.append(constant(np.array(0, numpy_dtype(element)), self.weights))
        made.append(AddOp.make([value, made[-1].results[0]]))
        return made[-1].results[0]


def _filled(
    value: SSAValue, axis: int, before: int, behind: int, made: list[Operation]
) -> SSAValue:
    """A value with zeros before and behind it."""
    if not before and not behind:
        return value
    low, high = ([0] * len(tensor_type(value).get_shape()) for _ in range(2))
    low[axis], high[axis] = before, behind
    around = {"low": int_array(low), "high": int_array(high), "value": FloatAttr(0.0, f64)}
    made.append(PadOp.make([value], around))
    return made[-1].results[0]


def _sums_more(op: AddOp, inner: AddOp) -> bool:
    """Whether a sum that another is a term of puts parts side by side."""
    return op.y.type == inner.y.type and not isinstance(parts_of(op), str)


@dataclass(frozen=True)
class PadsToConcat(ModulePass):
    """Put parts side by side that are each padded with zeros to places of their own, and then added.

    So come the gradients of slices of one value, of queries, keys and values say: padded, each is as large
    as all, and is read there whole. Parts that overlap, are padded along several axes, or with anything but
    0.0 stay as they are. Exact: what a part is added to is 0.0, which is added to it here too, so that -0.0
    becomes 0.0 as before.

    ```mlir
    %0 = graph.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 8>, value = 0.0 : f64} : ...
    %1 = graph.pad %y {low = array<i64: 0, 4>, high = array<i64: 0, 0>, value = 0.0 : f64} : ...
    %z = graph.add %0, %1 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
    ```
    becomes
    ```mlir
    %zero = arith.constant dense<0.0> : tensor<f32>
    %0 = graph.concat(%x, %y) {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x12xf32>
    %z = graph.add %0, %zero : (tensor<4x12xf32>, tensor<f32>) -> tensor<4x12xf32>
    ```
    """

    name = "pads-to-concat"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [SumOfPads(weights_of(ctx))])
