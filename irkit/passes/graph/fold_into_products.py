"""`fold-into-products`: what scales and shifts the columns of a product's rows, as part of its matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float64Type, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph import AddOp, DivOp, GatherOp, MatmulOp, MulOp, SubOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.graph.finite_columns import is_finite
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore

LARGEST = 2.0**13
"""Of a shift, in units of a scaled column: the bits that a sum of float64 may lose beside it."""


class _Affine(NamedTuple):
    """factor * x + shift, column by column, in float64."""

    x: SSAValue
    factor: Array
    shift: Array


def _row(value: SSAValue, width: int, weights: WeightStore) -> Array | None:
    """A constant that is one number for each of `width` columns."""
    array = constant_array(value, weights)
    if array is None or array.ndim > 2 or (array.ndim == 2 and len(array) != 1):
        return None
    return np.broadcast_to(array.reshape(-1), width).astype(np.float64)


def _step(op: Operation, width: int, weights: WeightStore) -> _Affine | None:
    """x + c, c + x, x - c, x * c, c * x and x / c as such; None if `op` is none of these."""
    if not isinstance(op, AddOp | SubOp | MulOp | DivOp):
        return None
    x, row = op.lhs, _row(op.rhs, width, weights)
    if row is None and isinstance(op, AddOp | MulOp):
        x, row = op.rhs, _row(op.lhs, width, weights)
    if row is None or tensor_type(x) != tensor_type(op.results[0]):
        return None
    one, zero = np.ones(width), np.zeros(width)
    with np.errstate(all="ignore"):
        if isinstance(op, AddOp | SubOp):
            return _Affine(x, one, row if isinstance(op, AddOp) else -row)
        return _Affine(x, row if isinstance(op, MulOp) else 1 / row, zero)


def _affine(y: SSAValue, weights: WeightStore) -> _Affine | None:
    """What `y` is of the first value that is no sum or product with a constant row; None if it is that."""
    width = tensor_type(y).get_shape()[-1]
    found = _Affine(y, np.ones(width), np.zeros(width))
    while len(list(found.x.uses)) == 1 and isinstance(found.x.owner, Operation):
        step = _step(found.x.owner, width, weights)
        if step is None:
            break
        with np.errstate(all="ignore"):
            shift = found.factor * step.shift + found.shift
            found = _Affine(step.x, found.factor * step.factor, shift)
    return None if found.x is y else found


def _is_matrix(value: SSAValue, rows_vary: bool) -> bool:
    """Whether it has two dimensions; of rows that are many."""
    t = tensor_type(value)
    return t.get_num_dims() == 2 and (not rows_vary or t.get_shape()[0] == DYNAMIC)


def _sound(array: Array) -> bool:
    """Whether all are zeros or normal numbers, with room to be multiplied."""
    size = np.abs(array)
    return bool((np.isfinite(array) & ((size == 0) | (size > 1e-150)) & (size < 1e150)).all())


@dataclass
class ScalerOfProduct(Rule):
    """(f·x + s) w = x (f·w) + s w"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        w = constant_array(op.b, self.weights)
        if w is None or not _is_matrix(op.b, False) or not _is_matrix(op.a, True):
            return self.no_match(op, "it multiplies no rows of a batch by a constant matrix")
        if not isinstance(tensor_type(op.a).element_type, Float64Type):
            return self.no_match(op, "another order of rounding shows in fewer bits than float64's")
        affine = _affine(op.a, self.weights)
        if affine is None:
            return self.no_match(op, "nothing scales or shifts its rows' columns, and them alone")
        factor, shift = affine.factor[:, None], affine.shift
        if not (np.abs(shift) <= LARGEST).all():
            return self.no_match(op, "a shift of {} is more than sums bear", np.abs(shift).max())
        with np.errstate(all="ignore"):
            folded, rest = factor * w, shift @ w
        if not (_sound(affine.factor) and _sound(folded) and (affine.factor != 0).all()):
            return self.no_match(op, "a scale is zero, or so far from one that digits are lost")
        matrix = constant(folded, self.weights)
        product = MatmulOp.make([affine.x, matrix.results[0]], dict(op.properties))
        inherit(product, op)
        made: list[Operation] = [matrix, product]
        if rest.any():
            row = constant(rest, self.weights)
            made += [row, AddOp.make([product.results[0], row.results[0]])]
        rewriter.replace(op, made, [made[-1].results[0]])


@dataclass
class ProductOfProduct(Rule):
    """(x v) w = x (v w), where that is less to multiply."""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        inner, w = op.a.owner, constant_array(op.b, self.weights)
        if not isinstance(inner, MatmulOp) or w is None or not op.a.has_one_use():
            return self.no_match(op, "it multiplies by no constant what is a product for it alone")
        v = constant_array(inner.b, self.weights)
        if v is None or v.ndim != 2 or w.ndim != 2 or not _is_matrix(inner.a, True):
            return self.no_match(op, "the product before it is of no batch and constant matrix")
        if not isinstance(tensor_type(op.a).element_type, Float64Type):
            return self.no_match(op, "another order of rounding shows in fewer bits than float64's")
        if v.shape[0] * w.shape[1] > v.size + w.size:
            return self.no_match(op, "one product would be more to multiply than two")
        if not is_finite(inner.a, self.weights):
            return self.no_match(op, "an infinity may come to something else")
        with np.errstate(all="ignore"):
            both, bound = v @ w, np.abs(v) @ np.abs(w)
        if not np.isfinite(bound).all() or bound.max() > LARGEST * np.abs(both).max():
            return self.no_match(op, "products of the two matrices cancel, or are not finite")
        matrix = constant(both, self.weights)
        product = MatmulOp.make([inner.a, matrix.results[0]], dict(op.properties))
        inherit(product, op)
        rewriter.replace(op, [matrix, product], [product.results[0]])


@dataclass
class OrderOfProduct(Rule):
    """matmul(gather(x, p), w) = matmul(x, w in the order of x's columns), where p has each column once"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        inner, w = op.a.owner, constant_array(op.b, self.weights)
        if (
            not isinstance(inner, GatherOp)
            or inner.axis.value.data != 1
            or w is None
            or w.ndim != 2
        ):
            return self.no_match(op, "it multiplies no picked columns by a constant matrix")
        order = constant_array(inner.indices, self.weights)
        width = tensor_type(inner.data).get_shape()[-1]
        if order is None or not _is_matrix(inner.data, False):
            return self.no_match(op, "which columns are picked is not known")
        if len(order) != width or (np.sort(order) != np.arange(width)).any():
            return self.no_match(op, "not every column is picked once")
        matrix = constant(np.ascontiguousarray(w[np.argsort(order)]), self.weights)
        product = MatmulOp.make([inner.data, matrix.results[0]], dict(op.properties))
        inherit(product, op)
        rewriter.replace(op, [matrix, product], [product.results[0]])


@dataclass
class ShiftOfShift(Rule):
    """(x w + s) + t = x w + (s + t)"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /):
        inner = op.lhs.owner
        if not isinstance(inner, AddOp) or not isinstance(inner.lhs.owner, MatmulOp):
            return self.no_match(op, "it adds to no product that was added to")
        s, t = (constant_array(v, self.weights) for v in (inner.rhs, op.rhs))
        if s is None or t is None or s.dtype != np.float64 or s.ndim != 1 or t.ndim != 1:
            return self.no_match(op, "what is added is not twice a constant row of float64")
        if not inner.results[0].has_one_use():
            return self.no_match(op, "something else reads the first sum")
        row = constant(s + t, self.weights)
        total = AddOp.make([inner.lhs, row.results[0]])
        rewriter.replace(op, [row, total], [total.results[0]])


RULES = (ScalerOfProduct, ProductOfProduct, OrderOfProduct, ShiftOfShift)


@dataclass(frozen=True)
class FoldIntoProducts(ModulePass):
    """Fold scalers, and products, into the constant matrix that multiplies what they make.

    Rows of a batch whose columns are scaled and shifted by constants, for one product alone: the scale goes
    into the matrix, the shift becomes a row that is added. So do StandardScaler, MinMaxScaler and their like
    into linear models, and projections (PCA, TruncatedSVD) of finite rows into what reads them. Columns in
    another order are the matrix's rows in another. Scales and projections of float64 alone. Numeric risk:
    sums are rounded elsewhere. A shift of 2^13 units of its scaled column, the largest that is folded, loses
    13 of a sum's 53 bits; products whose terms cancel by as much stay. What is infinite or missing comes to
    the same, and no scale is folded that is zero or within 1e-150 of it.

    ```mlir
    %0 = graph.sub %x, %mean : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
    %1 = graph.div %0, %scale : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
    %2 = graph.matmul %1, %w : (tensor<?x3xf64>, tensor<3x2xf64>) -> tensor<?x2xf64>
    %3 = graph.add %2, %b : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
    ```
    becomes, with w' = w / scale and b' = b - (mean / scale) w,
    ```mlir
    %2 = graph.matmul %x, %w' : (tensor<?x3xf64>, tensor<3x2xf64>) -> tensor<?x2xf64>
    %3 = graph.add %2, %b' : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
    ```
    """

    name = "fold-into-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        rewrite(op, [rule(weights) for rule in RULES])
