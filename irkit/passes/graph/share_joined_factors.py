"""`share-joined-factors`: a product of parts side by side as one of parts that lie one behind another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, f32, f64, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.passes.graph.join_product_sums import terms_of
from irkit.rewriting import Rule, rewrite

TILE: Final = (16, 32)
"""Rows and columns of the smallest tile of a product."""
LEAST: Final = 64
"""Terms of a part at least: what a tile multiplies in one turn."""
TURNS: Final = 4
"""So many such tiles of a sum over all parts a vEU has at most: of more results a product of packed terms
does more at once than a copy of the parts takes."""


@dataclass(frozen=True)
class Columns:
    """A part of a matrix's columns, from `first` on."""

    value: SSAValue
    first: int

    @property
    def count(self) -> int:
        """How many they are."""
        return tensor_type(self.value).get_shape()[1]


def columns_of(value: SSAValue) -> list[Columns] | str:
    """The parts that a matrix is put together of, from left to right, or why it is of none: it is a sum of
    what is padded with zeros, each to columns of its own, that are all columns together."""
    if not isinstance(value.owner, graph.AddOp):
        return "its first factor is no sum"
    parts = list[Columns]()
    for term in terms_of(value.owner):
        pad = term.owner
        if not isinstance(pad, graph.PadOp) or pad.value.value.data != 0:
            return "a term of its first factor is not padded with zeros"
        low, high = ints(pad.low), ints(pad.high)
        if len(low) != 2 or low[0] or high[0]:
            return "a term of its first factor has other rows"
        parts.append(Columns(pad.x, low[1]))
    parts.sort(key=lambda part: part.first)
    ends = [0, *(part.first + part.count for part in parts)]
    if [part.first for part in parts] != ends[:-1] or ends[-1] != _shape(value)[1]:
        return "terms of its first factor overlap, or leave columns out"
    return parts


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def is_whole(op: graph.GemmOp) -> bool:
    """Whether a product becomes one sum over all parts: in float32, which tensor cores multiply."""
    return tensor_type(op.y).element_type == f32


def _why_whole(op: graph.GemmOp, parts: Sequence[Columns], veus: int) -> str:
    """Why a product stays one; empty where its parts are better."""
    if len({part.count for part in parts}) > 1 or parts[0].count < LEAST or len(parts) < 2:
        return "its parts are short, or of several lengths"
    tiles = math.prod(math.ceil(n / side) for n, side in zip(_shape(op.y), TILE, strict=True))
    if tiles > TURNS * veus if is_whole(op) else tiles * len(parts) > veus:
        return "its results leave too few vEUs without work"
    users = {use.operation for use in op.y.uses}
    if not users or not all(isinstance(user, UnaryOp | BinaryOp) for user in users):
        return "the sum of its parts would be a step of its own"
    return ""


@dataclass
class ShareJoinedFactor(Rule):
    """[a, b] @ [c; d] = a @ c + b @ d, in float32 as one sum over both"""

    veus: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.GemmOp, rewriter: PatternRewriter, /):
        if reason := _why_no_product(op):
            return self.no_match(op, "{}", reason)
        parts = columns_of(op.a)
        if isinstance(parts, str):
            return self.no_match(op, "{}", parts)
        if reason := _why_whole(op, parts, self.veus):
            return self.no_match(op, "{}", reason)
        made = list[Operation]()
        y = _product(op, parts, made) if is_whole(op) else _summed(_products(op, parts, made), made)
        rewriter.replace(op, made, [y])


def _why_no_product(op: graph.GemmOp) -> str:
    if op.trans_a.value.data or op.c is not None or op.alpha.value.data != 1:
        return "its first factor is transposed, or it has more than a product"
    if tensor_type(op.y).element_type not in (f32, f64):
        return "it is of other elements"
    return "it has open dimensions" if DYNAMIC in (*_shape(op.y), *_shape(op.a)) else ""


def _stacked(op: graph.GemmOp, parts: Sequence[Columns], made: list[Operation]) -> SSAValue:
    """parts×rows×terms: the parts of the first factor, one behind another."""
    first = [_reshape(part.value, (1, _shape(op.y)[0], part.count), made) for part in parts]
    made.append(graph.ConcatOp.make(first, {"axis": IntegerAttr(0, i64)}))
    return made[-1].results[0]


def _product(op: graph.GemmOp, parts: Sequence[Columns], made: list[Operation]) -> SSAValue:
    """One sum over parts and terms. Columns lead in the second factor: products read one of the two as it
    lies, and the parts of the first are no rows."""
    columns, count, terms = _shape(op.y)[1], len(parts), parts[0].count
    a, b = _stacked(op, parts, made), op.b
    if not op.trans_b.value.data:
        made.append(graph.TransposeOp.make([b], {"permutation": int_array([1, 0])}))
        b = made[-1].results[0]
    b = _reshape(b, (columns, count, terms), made)
    text = StringAttr("C(m, n) +=! A(p, m, k) * B(n, p, k)")
    made.append(graph.ExpressionOp.make([a, b], {"text": text}))
    inherit(made[-1], op)
    return made[-1].results[0]


def _products(op: graph.GemmOp, parts: Sequence[Columns], made: list[Operation]) -> SSAValue:
    """parts×rows×columns: those of each part by its rows of the second factor."""
    columns, count, terms = _shape(op.y)[1], len(parts), parts[0].count
    a = _stacked(op, parts, made)
    if op.trans_b.value.data:
        apart = _reshape(op.b, (columns, count, terms), made)
        made.append(graph.TransposeOp.make([apart], {"permutation": int_array([1, 2, 0])}))
        b = made[-1].results[0]
    else:
        b = _reshape(op.b, (count, terms, columns), made)
    made.append(graph.MatmulOp.make([a, b], {}))
    inherit(made[-1], op)
    return made[-1].results[0]


def _summed(products: SSAValue, made: list[Operation]) -> SSAValue:
    """The sum over the first dimension, by additions: ops that read it compute it where they do."""
    count, rows, columns = _shape(products)
    total: SSAValue | None = None
    for n in range(count):
        where = {"offsets": (n, 0, 0), "sizes": (1, rows, columns), "strides": (1, 1, 1)}
        made.append(graph.SliceOp.make([products], {k: int_array(v) for k, v in where.items()}))
        one = _reshape(made[-1].results[0], (rows, columns), made)
        if total is not None:
            made.append(graph.AddOp.make([total, one], {}))
        total = one if total is None else made[-1].results[0]
    assert total is not None
    return total


def _reshape(value: SSAValue, shape: Sequence[int], made: list[Operation]) -> SSAValue:
    made.append(graph.ReshapeOp.make([value], {"shape": int_array(shape)}))
    return made[-1].results[0]


@dataclass(frozen=True)
class ShareJoinedFactors(ModulePass):
    """Make of a `graph.gemm` whose first factor is parts side by side one of parts that lie one behind
    another.

    The gradients of a cell's gates are such parts, each padded with zeros to its columns of one matrix, whose
    product the step before waits for. One behind another they lie where they are made, and nothing copies
    them. Elementwise ops alone may read the product. In float32 it is one sum over all parts, behind which
    what reads it is computed where it is made; its columns lead in the second factor, a weight that is turned
    once for all steps. In float64, of so few results that most vEUs of a GPU would have none, it is a product
    of each part, side by side on vEUs, and what reads it adds them up. The parts have equally many columns,
    64 or more. On a GPU only.

    Numeric risk: floats are added in another order.

    ```mlir
    %0 = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64}
    %1 = graph.pad %b {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64}
    %2 = graph.add %0, %1 : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
    %3 = graph.gemm %2, %w {...} : (tensor<32x128xf32>, tensor<128x64xf32>) -> tensor<32x64xf32>
    ```
    becomes, reshapes left out,
    ```mlir
    %4 = graph.concat(%a, %b) {axis = 0 : i64} : ... -> tensor<2x32x64xf32>
    %5 = graph.transpose %w {permutation = array<i64: 1, 0>} : ... -> tensor<64x2x64xf32>
    %3 = graph.expression %4, %5 {text = "C(m, n) +=! A(p, m, k) * B(n, p, k)"} : ... -> tensor<32x64xf32>
    ```
    """

    name = "share-joined-factors"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = gpu_of(self.device)
        if gpu is not None:
            rewrite(op, [ShareJoinedFactor(gpu.veus)])
