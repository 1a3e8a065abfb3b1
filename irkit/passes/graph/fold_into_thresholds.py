"""`fold-into-thresholds`: what scales, fills or casts columns that trees compare, as part of thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.functions import is_straight
from irkit.dialects.graph import ForestOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.passes.graph.column_facts import Columns, Kind, as_function, column_facts, of_columns
from irkit.passes.graph.float_ranges import floats, ordinals
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore

NODES_PER_COLUMN = 2
"""So many comparisons of float64 in place of float32 take as long as an op on a column."""

Run = Callable[[Array], Array]


@dataclass(frozen=True)
class _Nodes:
    """Nodes that compare something: of each the column of x, that of the input that it is of, and the
    threshold."""

    columns: Array
    sources: Array
    thresholds: Array


@dataclass
class ColumnsOfThresholds(Rule):
    """f(x) <= t where x <= the last float whose f is; x < the first whose f is not below t"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForestOp, rewriter: PatternRewriter, /):
        main = op.parent_op()
        if not isinstance(main, FuncOp) or not is_straight(main) or not of_columns(main):
            return self.no_match(op, "it is in no function of one argument, rows×columns of floats")
        arrays = [constant_array(v, self.weights) for v in (op.feature, op.threshold, op.left)]
        feature, threshold, left = arrays
        missing = constant_array(op.nan_left, self.weights)
        if feature is None or threshold is None or left is None or missing is None:
            return self.no_match(op, "its nodes are not known")
        (x,) = main.body.block.args
        facts = column_facts(main, self.weights).get(op.x)
        run = as_function(main, op.x, self.weights)
        if op.x is x or facts is None or run is None:
            return self.no_match(op, "it compares the input itself, or what is not known of it")
        inner = np.flatnonzero(left != np.arange(len(left)))
        if (reason := _why_not(op, facts, feature[inner])) is not None:
            return self.no_match(op, "{}", reason)
        nodes = _Nodes(feature[inner], facts.sources[feature[inner]], threshold[inner])
        strict = op.comparison.data == "lt"
        found = _thresholds(run, nodes, strict, _width(main), numpy_dtype(_element(main)))
        if found is None:
            return self.no_match(
                op, "a column falls where the input's rises, or comes to neither side"
            )
        folded = np.zeros(len(left), found.dtype)
        folded[inner] = found
        kept = np.zeros(len(left), feature.dtype)
        kept[inner] = nodes.sources
        to_left = missing.copy()
        to_left[inner] = _where_missing(run, nodes, strict, missing[inner], main)
        made = [constant(a, self.weights) for a in (kept, folded, to_left)]
        numbers, limits, nans = (c.results[0] for c in made)
        operands = [x, numbers, limits, op.left, op.right, nans, *list(op.operands)[6:]]
        y = ForestOp.make(operands, dict(op.properties))
        rewriter.replace(op, [*made, y], [y.results[0]])


def _element(main: FuncOp) -> Attribute:
    return tensor_type(main.body.block.args[0]).element_type


def _width(main: FuncOp) -> int:
    """Columns of the input."""
    return tensor_type(main.body.block.args[0]).get_shape()[1]


def _why_not(op: ForestOp, facts: Columns, columns: Array) -> str | None:
    """Why what it compares is not the input's columns, in their order."""
    if len(columns) == 0:
        return "no node compares anything"
    if (facts.kinds[columns] != Kind.NUMBER).any():
        return "a column that it compares hangs on no column of the input, in its order"
    main = op.parent_op()
    assert isinstance(main, FuncOp)
    widened = tensor_type(op.x).element_type != _element(main)
    if widened and len(columns) > NODES_PER_COLUMN * _computed(op.x):
        return "it would compare more floats of twice the size than is computed for it"
    return None


def _computed(x: SSAValue) -> int:
    """Columns of all values that `x` is made of, itself among them, and no constants."""
    seen, left, total = set[SSAValue](), [x], 0
    while left:
        value = left.pop()
        if value in seen or not isinstance(value.owner, Operation) or not value.owner.operands:
            continue
        seen.add(value)
        total += tensor_type(value).get_shape()[-1]
        left += value.owner.operands
    return total


def _layers(nodes: _Nodes) -> Iterator[tuple[Array, Array]]:
    """Nodes whose columns are of different columns of the input, and the row of each: those of one column in
    rows of their own."""
    columns, which = np.unique(nodes.columns, return_inverse=True)
    sources = np.array([nodes.sources[which == i][0] for i in range(len(columns))])
    turn = np.array([(sources[:i] == s).sum() for i, s in enumerate(sources)])
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(columns)))
    rows = np.empty(len(which), np.int64)
    rows[order] = np.arange(len(which)) - starts[which[order]]
    for layer in range(int(turn.max()) + 1):
        chosen = np.flatnonzero(turn[which] == layer)
        yield chosen, rows[chosen]


@dataclass(frozen=True)
class _Asked:
    """Some nodes' comparisons as functions of one float each, asked all at once."""

    run: Run
    nodes: _Nodes
    chosen: Array
    rows: Array
    points: Array
    strict: bool

    def __call__(self, x: Array) -> Array:
        self.points[self.rows, self.nodes.sources[self.chosen]] = x
        y = self.run(self.points)[self.rows, self.nodes.columns[self.chosen]]
        return _left(y, self.nodes.thresholds[self.chosen], self.strict)


def _left(y: Array, threshold: Array, strict: bool) -> Array:
    return y < threshold if strict else y <= threshold


def _thresholds(
    run: Run, nodes: _Nodes, strict: bool, width: int, dtype: np.dtype[Any]
) -> Array | None:
    """Of each node the threshold of the input's column, by bisection over all floats; None if there is none:
    a column that falls, one that is left of `<` or right of `<=` whatever comes."""
    found = np.empty(len(nodes.columns), dtype)
    for chosen, rows in _layers(nodes):
        points = np.zeros((int(rows.max()) + 1, width), dtype)
        holds = _Asked(run, nodes, chosen, rows, points, strict)
        least, most = np.full(len(rows), -np.inf, dtype), np.full(len(rows), np.inf, dtype)
        first, last = holds(least), holds(most)
        # With `<` no float is right of inf; with `<=` none is left of -inf.
        if (last & (~first | strict)).any() or (~first & (not strict)).any():
            return None
        good, bad = ordinals(least), ordinals(most)
        for _ in range(8 * dtype.itemsize):
            # The two may be far apart: halves are added, so that nothing overflows.
            middle = (good >> 1) + (bad >> 1) + (good & bad & 1)
            here = holds(floats(middle, dtype))
            good, bad = np.where(here, middle, good), np.where(here, bad, middle)
        end = floats(bad if strict else good, dtype)
        found[chosen] = np.where(last, most, np.where(first, end, least))
    return found


def _where_missing(run: Run, nodes: _Nodes, strict: bool, missing: Array, main: FuncOp) -> Array:
    """Whether a missing value goes left: where something stands for it, as that does."""
    nothing = np.full((1, _width(main)), np.nan, numpy_dtype(_element(main)))
    filled = run(nothing)[0, nodes.columns]
    return np.where(np.isnan(filled), missing, _left(filled, nodes.thresholds, strict))


@dataclass(frozen=True)
class FoldIntoThresholds(ModulePass):
    """Have trees compare the input itself, where what they compare is made of it column by column.

    Scalers, imputers, casts and selections keep the order of a column's floats (those that turn it round are
    left alone). What goes left is then an interval of them, whose end is found by bisection over the floats,
    running what stands between: every row comes to the same leaf, to the last bit, NaN and infinities
    included. What a missing value is filled with says where it goes. Forests of float32 that would have to
    compare float64 of the input are folded only where they are small beside what is computed for them.

    ```mlir
    %1 = graph.div %x, %scale : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
    %y = graph.forest %1, %feature, %threshold, ...
    ```
    becomes
    ```mlir
    %y = graph.forest %x, %feature, %threshold_of_x, ...
    ```
    """

    name = "fold-into-thresholds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [ColumnsOfThresholds(weights_of(ctx))])
