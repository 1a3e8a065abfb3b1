"""What the three tree strategies share: a forest as arrays, leaves to sums, and the pass around them.

The strategies are Hummingbird's (Nakandala et al., OSDI 2020, section 4), with two differences: a
column is picked by a gather, so that NaN in another column cannot spread, and leaves are summed in
tree order from `base`, so that every strategy equals the walk to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.forests import forest_fault
from irkit.dialects.graph import (
    AddOp,
    AndOp,
    CompareOp,
    ConcatOp,
    GatherOp,
    IsNanOp,
    OrOp,
    ReduceOp,
    ReshapeOp,
    SliceOp,
    WhereOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.forest import ForestOp
from irkit.dialects.types import int_array, tensor_type
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore


@dataclass
class ForestArrays:
    """The operands of a forest whose trees are all known."""

    feature: Array
    threshold: Array
    left: Array
    right: Array
    nan_left: Array
    value: Array
    root: Array
    output: Array
    base: Array
    comparison: str
    depth: int

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.root)

    def fault(self, features: int) -> str | None:
        """Why the arrays are no trees of at most `depth` levels over `features` columns, if so."""
        arrays = (self.feature, self.left, self.right, self.root, self.output)
        return forest_fault(*arrays, columns=len(self.base), features=features, depth=self.depth)


def forest_arrays(op: ForestOp, weights: WeightStore) -> ForestArrays | None:
    """The arrays of a forest; None if one is no constant."""
    arrays: list[Array] = []
    for operand in op.operands[1:]:
        array = constant_array(operand, weights)
        if array is None:
            return None
        arrays.append(array)
    feature, threshold, left, right, nan_left, value, root, output, base = arrays
    depth = max(op.depth.value.data, 1)
    return ForestArrays(
        feature,
        threshold,
        left,
        right,
        nan_left,
        value,
        root,
        output,
        base,
        op.comparison.data,
        depth,
    )


class Ops:
    """Builds graph ops before the forest that they replace."""

    def __init__(self, op: ForestOp, rewriter: PatternRewriter, weights: WeightStore) -> None:
        self.x = op.x
        self._op, self._rewriter, self._weights = op, rewriter, weights

    def __call__(
        self, op_type: type[GraphOp], /, *operands: SSAValue, **props: Attribute
    ) -> SSAValue:
        """An op with one result."""
        made = op_type.make(operands, props)
        made.location = self._op.location
        self._rewriter.insert(made, InsertPoint.before(self._op))
        return made.results[0]

    def constant(self, array: Array, hint: str) -> SSAValue:
        """A weight."""
        made = constant(np.ascontiguousarray(array), self._weights, hint)
        self._rewriter.insert(made, InsertPoint.before(self._op))
        return made.result

    def gather(self, data: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """Slices of `data` along `axis`."""
        return self(GatherOp, data, indices, axis=IntegerAttr(axis, i64))

    def reshape(self, x: SSAValue, *shape: int) -> SSAValue:
        """Rows stay, the rest of each row becomes `shape`."""
        return self(ReshapeOp, x, shape=int_array((self.rows, *shape)))

    @property
    def rows(self) -> int:
        """Rows of x: DYNAMIC for a batch."""
        return tensor_type(self.x).get_shape()[0]

    def goes_left(
        self, x: SSAValue, threshold: SSAValue, nan_left: SSAValue, f: ForestArrays
    ) -> SSAValue:
        """x compared with the threshold; where NaN goes left, NaN too."""
        below = self(CompareOp, x, threshold, predicate=StringAttr(f.comparison))
        if not f.nan_left.any():
            return below
        return self(OrOp, below, self(AndOp, self(IsNanOp, x), nan_left))

    def total(self, leaves: SSAValue, f: ForestArrays) -> SSAValue:
        """Leaves (rows×trees×width) summed in tree order from base: rows×columns."""
        columns = len(f.base)
        if f.value.shape[1] == columns:
            return self._in_order(leaves, f.base, f.trees, columns)
        parts = [self._column(leaves, f, c) for c in range(columns)]
        return self(ConcatOp, *parts, axis=IntegerAttr(1, i64)) if columns > 1 else parts[0]

    def _column(self, leaves: SSAValue, f: ForestArrays, column: int) -> SSAValue:
        mine = np.flatnonzero(f.output == column)
        base = f.base[column : column + 1]
        if not len(mine):
            # No tree adds to it: base in every row.
            first = self._part(self.x, 0, 1)
            same = self(CompareOp, first, first, predicate=StringAttr("eq"))
            start = self.constant(base, "base")
            return self(WhereOp, same, start, start)
        if len(mine) < f.trees:
            leaves = self.gather(leaves, self.constant(mine.astype(np.int64), "trees"), 1)
        return self._in_order(leaves, base, len(mine), 1)

    def _in_order(self, leaves: SSAValue, base: Array, trees: int, width: int) -> SSAValue:
        first = self(AddOp, self._part(leaves, 0, 1), self.constant(base, "base"))
        if trees > 1:
            rest = self._part(leaves, 1, trees - 1)
            first = self(ConcatOp, first, rest, axis=IntegerAttr(1, i64))
        summed = {"kind": StringAttr("sum"), "keepdims": BoolAttr.from_bool(False)}
        return self(ReduceOp, first, axes=int_array([1]), **summed)

    def _part(self, x: SSAValue, start: int, count: int) -> SSAValue:
        """`count` entries of axis 1 from `start`."""
        rows, _, *rest = tensor_type(x).get_shape()
        sizes = (rows, count, *rest)
        offsets = (0, start, *(0 for _ in rest))
        ones = int_array([1] * len(sizes))
        return self(SliceOp, x, offsets=int_array(offsets), sizes=int_array(sizes), strides=ones)


Program = Callable[[Ops, ForestArrays], SSAValue | None]
"""Builds a forest's sums; None, with nothing built, if it cannot be exact."""


@dataclass
class ReplaceForest(Rule):
    """A forest of one strategy becomes its tensor program."""

    strategy: str
    deepest: int
    program: Program
    weights: WeightStore
    force: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForestOp, rewriter: PatternRewriter, /) -> None:
        if op.strategy.data != self.strategy and not self.force:
            return self.no_match(op, "its strategy is {}", op.strategy.data)
        if op.depth.value.data > self.deepest:
            return self.no_match(
                op, "it is {} deep, the limit is {}", op.depth.value.data, self.deepest
            )
        if 0 in tensor_type(op.x).get_shape():
            return self.no_match(op, "x has no elements, and no slices")
        found = forest_arrays(op, self.weights)
        if found is None:
            return self.no_match(op, "its arrays are no constants")
        # Else a cycle would be followed for ever.
        fault = found.fault(tensor_type(op.x).get_shape()[1])
        if fault:
            raise PassFailedException(f"graph.forest whose arrays are no trees: {fault}")
        result = self.program(Ops(op, rewriter, self.weights), found)
        if result is None:
            return self.no_match(op, "{} would not be exact for its leaves", self.strategy)
        rewriter.replace(op, [], [result])


def carry_out(
    ctx: Context, module: ModuleOp, strategy: str, deepest: int, program: Program, force: bool
) -> None:
    """Replace every forest of `strategy`, with `force` of any, that is at most `deepest` deep."""
    rewrite(module, [ReplaceForest(strategy, deepest, program, weights_of(ctx), force)])
