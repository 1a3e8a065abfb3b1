"""`select-first`: columns that are not asked for are not computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph import CastOp, ConcatOp, ForestOp, GatherOp, MatmulOp, WhereOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import tensor_type
from irkit.passes.graph.finite_columns import is_finite
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore

ELEMENTWISE = (UnaryOp, BinaryOp, CastOp, WhereOp)


def _width(value: SSAValue) -> int:
    return tensor_type(value).get_shape()[-1]


def _rank(value: SSAValue) -> int:
    return tensor_type(value).get_num_dims()


def _columns(op: GatherOp, weights: WeightStore) -> Array | None:
    """The columns that `op` picks of rows×columns, if they are known and within."""
    if _rank(op.data) != 2 or op.axis.value.data != 1 or _rank(op.indices) != 1:
        return None
    found = constant_array(op.indices, weights)
    if found is None or len(found) == 0 or found.min() < 0 or found.max() >= _width(op.data):
        return None
    return found.astype(np.int64)


@dataclass
class _OfColumns(Rule):
    """What the rules share: picking columns, as a new op where it has to be one."""

    weights: WeightStore

    def pick(self, value: SSAValue, columns: Array, made: list[Operation]) -> SSAValue:
        """Columns of a value of any rank that broadcasts along rows; itself if they are all, in order."""
        if _rank(value) == 0 or _width(value) == 1:
            return value
        if len(columns) == _width(value) and (columns == np.arange(len(columns))).all():
            return value
        array = constant_array(value, self.weights)
        if array is not None:
            kept = constant(np.ascontiguousarray(array[..., columns]), self.weights)
            made.append(kept)
            return kept.results[0]
        indices = constant(columns, self.weights)
        picked = GatherOp.make([value, indices.results[0]], {"axis": _axis(_rank(value) - 1)})
        made += [indices, picked]
        return picked.results[0]


def _axis(number: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(number, i64)


@dataclass
class SelectionOfSelection(_OfColumns):
    """gather(gather(x, i), j) = gather(x, i[j])"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /):
        inner = op.data.owner
        columns = _columns(op, self.weights)
        if columns is None or not isinstance(inner, GatherOp):
            return self.no_match(op, "it picks no columns of picked ones")
        before = _columns(inner, self.weights)
        if before is None or _width(inner.data) == 1:
            return self.no_match(op, "what is picked first is no known columns of several")
        made: list[Operation] = []
        y = self.pick(inner.data, before[columns], made)
        rewriter.replace(op, made, [y])


def _why_not(op: GatherOp, columns: Array | None) -> str | None:
    """Why columns of an op are not those of its operands, if nothing else is said of it."""
    if columns is None:
        return "it picks no known columns of a matrix"
    if len(set(columns.tolist())) < len(columns) or len(columns) >= _width(op.data):
        return "it leaves no columns out, or has some of them twice"
    if len(list(op.data.uses)) > 1:
        return "something else reads what it picks from"
    return None


@dataclass
class SelectionOfElementwise(_OfColumns):
    """gather(f(x, y)) = f(gather(x), gather(y))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /):
        columns, source = _columns(op, self.weights), op.data.owner
        if (reason := _why_not(op, columns)) is not None:
            return self.no_match(op, "{}", reason)
        if not isinstance(source, ELEMENTWISE):
            return self.no_match(op, "what it picks from is not elementwise")
        assert columns is not None
        made: list[Operation] = []
        operands = [self.pick(v, columns, made) for v in source.operands]
        y = type(source).make(operands, dict(source.properties))
        rewriter.replace(op, [*made, y], [y.results[0]])


@dataclass
class SelectionOfConcat(_OfColumns):
    """gather(concat(a, b)) = concat(gather(a), gather(b)), without those of which nothing is picked."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /):
        columns, source = _columns(op, self.weights), op.data.owner
        if (reason := _why_not(op, columns)) is not None:
            return self.no_match(op, "{}", reason)
        if not isinstance(source, ConcatOp) or source.axis.value.data != 1:
            return self.no_match(op, "what it picks from is no columns side by side")
        assert columns is not None
        ends = np.cumsum([_width(v) for v in source.inputs])
        runs = list(_runs(columns, ends))
        if len(runs) > len(source.inputs):
            return self.no_match(op, "columns of one part stand among others")
        made: list[Operation] = []
        parts = [self.pick(source.inputs[part], picked, made) for part, picked in runs]
        if len(parts) > 1:
            made.append(ConcatOp.make(parts, {"axis": _axis(1)}))
            parts = [made[-1].results[0]]
        rewriter.replace(op, made, parts)


def _runs(columns: Array, ends: Array) -> Iterator[tuple[int, Array]]:
    """Each part that is picked from, and its columns, in order."""
    starts = np.concatenate([[0], ends[:-1]])
    owner = np.searchsorted(ends, columns, side="right")
    for part, places in groupby(range(len(columns)), key=lambda i: int(owner[i])):
        yield part, columns[list(places)] - int(starts[part])


@dataclass
class SelectionOfProduct(_OfColumns):
    """gather(matmul(x, w)) = matmul(x, gather(w))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /):
        columns, source = _columns(op, self.weights), op.data.owner
        if (reason := _why_not(op, columns)) is not None:
            return self.no_match(op, "{}", reason)
        if not isinstance(source, MatmulOp) or _rank(source.b) != 2:
            return self.no_match(op, "what it picks from is no product of matrices")
        assert columns is not None
        array = constant_array(source.b, self.weights)
        if array is None:
            return self.no_match(op, "the product's columns are of no constant")
        w = constant(np.ascontiguousarray(array[:, columns]), self.weights)
        y = MatmulOp.make([source.a, w.results[0]], dict(source.properties))
        inherit(y, source)
        rewriter.replace(op, [w, y], [y.results[0]])


@dataclass
class ColumnsOfForest(_OfColumns):
    """A forest is given the features that its nodes compare."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForestOp, rewriter: PatternRewriter, /):
        feature, left = (constant_array(v, self.weights) for v in (op.feature, op.left))
        if feature is None or left is None:
            return self.no_match(op, "its nodes are not known")
        if (reason := _why_whole(op.x)) is not None:
            return self.no_match(op, "{}", reason)
        inner = left != np.arange(len(left))
        used = np.unique(feature[inner])
        if len(used) == 0 or len(used) >= _width(op.x):
            return self.no_match(op, "its nodes compare all features, or none")
        made: list[Operation] = []
        x = self.pick(op.x, used.astype(np.int64), made)
        places = np.where(inner, np.searchsorted(used, feature), 0).astype(feature.dtype)
        numbers = constant(places, self.weights)
        operands = [x, numbers.results[0], *list(op.operands)[2:]]
        y = ForestOp.make(operands, dict(op.properties))
        rewriter.replace(op, [*made, numbers, y], [y.results[0]])


@dataclass
class ColumnsOfProduct(_OfColumns):
    """matmul(x, w) without columns of x that w multiplies by zeros alone, where x is finite."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        w = constant_array(op.b, self.weights)
        if w is None or w.ndim != 2 or _rank(op.a) != 2:
            return self.no_match(op, "it multiplies no rows by a constant matrix")
        if (reason := _why_whole(op.a)) is not None:
            return self.no_match(op, "{}", reason)
        kept = np.flatnonzero((w != 0).any(axis=1))
        if len(kept) == 0 or len(kept) == len(w):
            return self.no_match(op, "no row of the matrix is zero, or all are")
        if not is_finite(op.a, self.weights):
            return self.no_match(op, "zero times infinity is no zero")
        made: list[Operation] = []
        x = self.pick(op.a, kept, made)
        rows = constant(np.ascontiguousarray(w[kept]), self.weights)
        y = MatmulOp.make([x, rows.results[0]], dict(op.properties))
        inherit(y, op)
        rewriter.replace(op, [*made, rows, y], [y.results[0]])


def _why_whole(x: SSAValue) -> str | None:
    """Why all columns of x are there anyway."""
    if not isinstance(x.owner, (*ELEMENTWISE, GatherOp, ConcatOp, MatmulOp)):
        return "its columns are not computed one by one"
    return "something else reads its columns" if len(list(x.uses)) > 1 else None


RULES = (
    SelectionOfSelection,
    SelectionOfElementwise,
    SelectionOfConcat,
    SelectionOfProduct,
    ColumnsOfForest,
    ColumnsOfProduct,
)


@dataclass(frozen=True)
class SelectFirst(ModulePass):
    """Pick columns before what is computed column by column, and only those that a model looks at.

    A selection (`graph.gather` of known columns) goes up through elementwise ops, columns side by side,
    products and other selections, as far as nothing else reads what it picks from: the push-down of feature
    selections of Hummingbird (Nakandala et al., OSDI 2020, 5.2). What mixes a row's columns stops it.
    Injection makes selections: of the features that a forest compares, and of the rows of a constant matrix
    that are not zero, where what they multiply is finite whatever comes. Both only where columns are
    computed one by one.
    Exact, but for the order of a product's sums.

    ```mlir
    %1 = graph.sub %0, %mean : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
    %2 = graph.gather %1, %columns {axis = 1 : i64} : (tensor<?x3xf32>, tensor<1xi64>) -> tensor<?x1xf32>
    ```
    becomes
    ```mlir
    %1 = graph.gather %0, %columns {axis = 1 : i64} : (tensor<?x3xf32>, tensor<1xi64>) -> tensor<?x1xf32>
    %2 = graph.sub %1, %mean_of_it : (tensor<?x1xf32>, tensor<1xf32>) -> tensor<?x1xf32>
    ```
    """

    name = "select-first"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        rewrite(op, [rule(weights) for rule in RULES])
