"""`sum-bins`: loops whose turns sum what lies between two limits, as one pass over the elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.tensor import ExtractSliceOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from irkit.context import weights_of
from irkit.dialects.constants import constant_array
from irkit.dialects.graph import (
    AndOp,
    CastOp,
    CompareOp,
    ConcatOp,
    GatherOp,
    GraphOp,
    MinOp,
    ReduceOp,
    ReshapeOp,
    ScatterAddOp,
    TopKOp,
    WhereOp,
)
from irkit.dialects.graph.composition import Ops
from irkit.dialects.loop_places import trips_of
from irkit.dialects.properties import attribute
from irkit.dialects.types import int_array, ints, numpy_dtype, tensor, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.loops.all_turns import AllTurns, Emitter, OneByOne, shape_of
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore

SEARCHED: Final = 12
"""What a step of a search takes, in comparisons of an element with two limits."""
MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
HALF_OPEN: Final = {("ge", "lt"): "le", ("gt", "le"): "lt"}
"""Predicates of an element beside its lower and its upper limit -> of a limit that an element is behind."""


@dataclass(frozen=True)
class Between:
    """A mask: whether elements of `x` lie between `low` and `high`, one of which belongs to them; `behind`:
    the predicate of a limit that an element is behind."""

    x: SSAValue
    low: SSAValue
    high: SSAValue
    behind: str


@dataclass(frozen=True)
class Binned:
    """A sum in a turn of `values` where the mask holds; None: how often it holds."""

    op: ReduceOp
    mask: Between
    values: SSAValue | None


@dataclass(frozen=True)
class Bins:
    """`place`: how many of all turns' limits, sorted, each element is behind; `covers`: which of the bins
    between two limits that follow one another lie between those of each turn, turns x bins."""

    place: SSAValue
    covers: SSAValue


@dataclass
class SumBins(Rule):
    """for n: s[n] = sum(v where low(n) <= x < high(n))  ->  sums of bins, added up for each n"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter, /):
        emit = Emitter(self.weights)
        try:
            sums = [b for o in op.body.block.ops if (b := _binned(op, o, self.weights)) is not None]
            made = _Turns(op, emit).sums(sums)
        except (OneByOne, UnsupportedError) as reason:
            return self.no_match(op, "{}", reason)
        if not made:
            return self.no_match(op, "it sums nothing between two limits")
        rewriter.insert(emit.ops, InsertPoint.before(op))
        _put(made, op, rewriter)


def _put(
    made: Sequence[tuple[Binned, SSAValue]], loop: scf.ForOp, rewriter: PatternRewriter
) -> None:
    for found, row in made:
        rewriter.replace(found.op, _own(loop, found.op, row))


def _own(loop: scf.ForOp, op: ReduceOp, row: SSAValue) -> Sequence[Operation]:
    """The element of a turn, in the place of what it summed."""
    place = arith.SubiOp(loop.body.block.args[0], loop.lb)
    kind = tensor_type(row).element_type
    part = ExtractSliceOp(row, [place.result], [1], [1], tensor(kind, [1]))
    shaped = ReshapeOp.make([part.result], {"shape": int_array(shape_of(op.y))})
    return [place, part, shaped]


def _binned(loop: scf.ForOp, op: Operation, weights: WeightStore) -> Binned | None:
    """What an op sums, where that is a sum of all that lies between two limits."""
    if not isinstance(op, ReduceOp) or op.kind.data != "sum":
        return None
    if len(set(ints(op.axes))) != len(shape_of(op.x)):
        return None
    summed = op.x.owner
    if isinstance(summed, CastOp):
        mask = _between(loop, summed.x)
        return None if mask is None else Binned(op, mask, None)
    if not isinstance(summed, WhereOp):
        return None
    condition, values, other = summed.operands
    zero = constant_array(other, weights)
    is_float = numpy_dtype(tensor_type(values).element_type).name in ("float32", "float64")
    if zero is None or zero.any() or not is_float or not _is_outside(loop, values):
        return None
    mask = _between(loop, condition)
    return None if mask is None else Binned(op, mask, values)


def _between(loop: scf.ForOp, mask: SSAValue) -> Between | None:
    """The limits of a mask."""
    both = mask.owner
    if not isinstance(both, AndOp):
        return None
    sides = [_side(loop, v) for v in both.operands]
    if None in sides:
        return None
    (x, first, one), (other, second, two) = sorted((s for s in sides if s), key=lambda s: s[1])
    behind = HALF_OPEN.get((first, second))
    if x is not other or behind is None or shape_of(mask) != shape_of(x):
        return None
    return Between(x, one, two, behind)


def _side(loop: scf.ForOp, mask: SSAValue) -> tuple[SSAValue, str, SSAValue] | None:
    """The elements that are compared with a limit, how, and the limit."""
    op = mask.owner
    if not isinstance(op, CompareOp) or op.predicate.data not in MIRRORED:
        return None
    left, right = op.operands
    if _is_outside(loop, left) and prod(shape_of(right)) == 1:
        return left, op.predicate.data, right
    if _is_outside(loop, right) and prod(shape_of(left)) == 1:
        return right, MIRRORED[op.predicate.data], left
    return None


def _is_outside(loop: scf.ForOp, value: SSAValue) -> bool:
    return not AllTurns(loop, Emitter(WeightStore())).is_inside(value)


@dataclass
class _Turns:
    """Sums of all turns of a loop."""

    loop: scf.ForOp
    emit: Emitter
    known: dict[Between, Bins] = field(default_factory=dict[Between, Bins])

    def __post_init__(self) -> None:
        self.turns = AllTurns(self.loop, self.emit)
        self.ops = Ops[SSAValue](self._make, self.emit.constant)

    def sums(self, found: Sequence[Binned]) -> list[tuple[Binned, SSAValue]]:
        """Of each turn. Raises OneByOne where the loop takes less, or limits hang on what it carries."""
        if not found:
            return []
        trips = trips_of(self.loop)
        count, largest = trips.count, max(prod(shape_of(b.mask.x)) for b in found)
        steps = (2 * count).bit_length()
        if trips.step != 1 or count * largest < SEARCHED * (largest * steps + count * count):
            raise OneByOne(f"{count} turns over {largest} elements take less one by one")
        for op in self._needed([v for b in found for v in (b.mask.low, b.mask.high)]):
            self.turns.add(op)
        return [(b, self._sum(b)) for b in found]

    def _make(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
        made = op.make(operands, {k: attribute(v) for k, v in props.items()})
        self.emit(made)
        return made.results

    def _needed(self, values: list[SSAValue]) -> list[Operation]:
        """Ops of the body on which limits hang, in order."""
        block, needed = self.loop.body.block, set[Operation]()
        while values:
            op = values.pop().owner
            if not isinstance(op, Operation) or op.parent is not block or op in needed:
                continue
            needed.add(op)
            values += op.operands
        # Indices are read off where they are used.
        kept = [op for op in block.ops if op in needed]
        return [op for op in kept if not isinstance(op, arith.IndexCastOp | arith.AddiOp)]

    def _sum(self, found: Binned) -> SSAValue:
        """Sums of bins, and of those that a turn covers."""
        o, bins = self.ops, self.bins(found.mask)
        count, own = prod(shape_of(found.mask.x)), tensor_type(found.op.y).element_type
        if found.values is None:
            terms = o.constant(np.ones(count))
        else:
            terms = o.reshape(o.expand(found.values, shape_of(found.mask.x)), [count])
            terms = o.cast(terms, np.float64)
        limits = 2 * self.turns.count
        start = o.constant(np.zeros(limits + 1, o.dtype(terms)))
        each = o.cut(o(ScatterAddOp, start, bins.place, terms), 0, 1, limits - 1)
        chosen = o.where(bins.covers, o.reshape(each, [1, limits - 1]), o.like(0, each))
        return o.cast(o.reduce(chosen, "sum", [1]), numpy_dtype(own))

    def bins(self, mask: Between) -> Bins:
        """Of all turns' limits. What lies between those of a turn is whole bins, whatever their order is:
        each limit is where a bin begins."""
        if mask in self.known:
            return self.known[mask]
        o, count = self.ops, self.turns.count
        low, high = (o.reshape(self.turns.of_all(v), [count]) for v in (mask.low, mask.high))
        both = o(ConcatOp, low, high, axis=0)
        limits, _ = o.pair(TopKOp, both, k=2 * count, axis=0, largest=False)
        x = o.reshape(mask.x, [prod(shape_of(mask.x))])
        begins = o.reshape(o.cut(limits, 0, 0, 2 * count - 1), [1, 2 * count - 1])
        from_low = o.compare(o.reshape(low, [count, 1]), begins, "le")
        below_high = o.compare(begins, o.reshape(high, [count, 1]), "lt")
        place = self._place(limits, x, mask.behind)
        self.known[mask] = Bins(place, o(AndOp, from_low, below_high))
        return self.known[mask]

    def _place(self, limits: SSAValue, x: SSAValue, behind: str) -> SSAValue:
        """How many of the limits, which ascend, each element is behind: by bisection."""
        o = self.ops
        (count,), (extent,) = shape_of(limits), shape_of(x)
        place = o.expand(o.constant(np.array(0)), [extent])
        for bit in reversed(range(count.bit_length())):
            step = o.like(1 << bit, place)
            after = o.add(place, step)
            last = o.like(count, place)
            nearest = o(MinOp, after, last)
            limit = o(GatherOp, limits, o.sub(nearest, o.like(1, place)), axis=0)
            is_behind = o(AndOp, o.compare(after, last, "le"), o.compare(limit, x, behind))
            place = o.where(is_behind, after, place)
        return place


@dataclass(frozen=True)
class SumBinsPass(ModulePass):
    """Where each turn of a loop sums, or counts, the elements between two limits that hang on the turn alone,
    sum each bin between two limits once, and for each turn the bins that lie between its own.

    Elements look for their bin by bisection among the sorted limits of all turns: n turns over m elements
    take m * log(n) + n^2 steps in place of n * m. An element that is NaN is in no bin, a limit that is NaN
    ends none. Sums of floats are added bin by bin, in float64. Loops of few turns stay.

    ```mlir
    %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %z) -> (tensor<1000xf64>) {
      %low = tensor.extract_slice %lows[%i] [1] [1] : tensor<1000xf64> to tensor<1xf64>
      %high = tensor.extract_slice %highs[%i] [1] [1] : tensor<1000xf64> to tensor<1xf64>
      %a = graph.compare %low, %x {predicate = "le"} : (tensor<1xf64>, tensor<90000xf64>) -> tensor<90000xi1>
      %b = graph.compare %x, %high {predicate = "lt"} : (tensor<90000xf64>, tensor<1xf64>) -> tensor<90000xi1>
      %m = graph.and %a, %b : (tensor<90000xi1>, tensor<90000xi1>) -> tensor<90000xi1>
      %w = graph.where %m, %v, %zero : (tensor<90000xi1>, tensor<90000xf64>, tensor<f64>) -> tensor<90000xf64>
      %y = graph.reduce %w {kind = "sum", axes = array<i64: 0>, keepdims = true}
        : (tensor<90000xf64>) -> tensor<1xf64>
      %t = tensor.insert_slice %y into %s[%i] [1] [1] : tensor<1xf64> into tensor<1000xf64>
      scf.yield %t : tensor<1000xf64>
    }
    ```
    becomes
    ```mlir
    %bins = graph.scatter_add %zeros, %place, %v
      : (tensor<2001xf64>, tensor<90000xi64>, tensor<90000xf64>) -> tensor<2001xf64>
    %sums = graph.reduce %covered {kind = "sum", axes = array<i64: 1>, keepdims = false}
      : (tensor<1000x1999xf64>) -> tensor<1000xf64>
    %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %z) -> (tensor<1000xf64>) {
      %y = tensor.extract_slice %sums[%i] [1] [1] : tensor<1000xf64> to tensor<1xf64>
      %t = tensor.insert_slice %y into %s[%i] [1] [1] : tensor<1xf64> into tensor<1000xf64>
      scf.yield %t : tensor<1000xf64>
    }
    ```
    """

    name = "sum-bins"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, scf.ForOp) for inner in op.walk()):
            rewrite(op, [SumBins(weights_of(ctx))])
