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
from irkit.passes.graph.join_product_sums import terms_of
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
    for term in terms_of(op):
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
    """pad(x) + pad(y) = concat(x + 0, y + 0), where no place has both"""

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
        extent = tensor_type(op.y).get_shape()[axis]
        # What lies between two parts comes with the one before it, what lies before all with the first.
        ends = [*(part.first for part in parts[1:]), extent]
        starts = [0, *(part.first for part in parts[1:])]
        values = [
            self._filled(part, axis, start, end, made)
            for part, start, end in zip(parts, starts, ends, strict=True)
        ]
        made.append(ConcatOp.make(values, {"axis": IntegerAttr(axis, i64)}))
        rewriter.replace(op, made, [made[-1].results[0]])

    def _filled(
        self, part: Part, axis: int, start: int, end: int, made: list[Operation]
    ) -> SSAValue:
        """A part, with zeros before and behind it."""
        value = self._and_zero(part.value, made)
        if (part.first, part.last) == (start, end):
            return value
        rank = len(tensor_type(value).get_shape())
        low, high = [0] * rank, [0] * rank
        low[axis], high[axis] = part.first - start, end - part.last
        around = {"low": int_array(low), "high": int_array(high)}
        made.append(PadOp.make([value], {**around, "value": FloatAttr(0.0, f64)}))
        return made[-1].results[0]

    def _and_zero(self, value: SSAValue, made: list[Operation]) -> SSAValue:
        """`value + 0.0`, which is what the sum has there: of -0.0 it is 0.0."""
        element = tensor_type(value).element_type
        if not is_float(element):
            return value
        made.append(constant(np.array(0, numpy_dtype(element)), self.weights))
        made.append(AddOp.make([value, made[-1].results[0]]))
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
    %0 = graph.add %x, %zero : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %1 = graph.add %y, %zero : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %z = graph.concat(%0, %1) {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x12xf32>
    ```
    """

    name = "pads-to-concat"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [SumOfPads(weights_of(ctx))])
