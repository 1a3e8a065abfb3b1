"""`halve-symmetric-products`: products of a matrix with itself, each pair of vectors multiplied once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, f64, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.graph import ConcatOp, MatmulOp, SliceOp, TransposeOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite

BANDS: Final = 4
"""Bands of rows: of b, (b + 1) / 2b of the products are left, and each is one that runs at full speed."""
ROUND: Final = 16
"""Rows of a band are a multiple of this."""
LEAST: Final = 512
"""Vectors, and elements of each, at least: for fewer, what is saved is little more than what is copied."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of a matrix, along `axis`, from `first` on to before `last`."""

    matrix: SSAValue
    axis: int
    first: int
    last: int


def vectors(factor: SSAValue, axis: int) -> Vectors:
    """What a factor's rows (`axis` 0) or columns (1) are, behind transpositions and slices."""
    first, count = 0, tensor_type(factor).get_shape()[axis]
    while True:
        source = factor.owner
        if isinstance(source, TransposeOp) and ints(source.permutation) == [1, 0]:
            factor, axis = source.x, 1 - axis
            continue
        if not isinstance(source, SliceOp) or not _is_of_whole_vectors(source, axis):
            return Vectors(factor, axis, first, first + count)
        factor, first = source.x, first + ints(source.offsets)[axis]


def _is_of_whole_vectors(op: SliceOp, axis: int) -> bool:
    whole = tensor_type(op.x).get_shape()[1 - axis]
    return ints(op.strides) == [1, 1] and ints(op.sizes)[1 - axis] == whole


@dataclass
class Parts:
    """Slices of both factors by number of their vectors, and products of these."""

    op: MatmulOp
    rows: Vectors
    columns: Vectors
    made: list[Operation]

    def product(self, rows: tuple[int, int], columns: tuple[int, int]) -> SSAValue:
        """Of some rows' vectors by some columns'."""
        a = self.cut(self.op.operands[0], 0, rows[0] - self.rows.first, rows[1] - self.rows.first)
        first = self.columns.first
        b = self.cut(self.op.operands[1], 1, columns[0] - first, columns[1] - first)
        made = MatmulOp.make([a, b])
        inherit(made, self.op)
        return self._add(made)

    def cut(self, value: SSAValue, axis: int, start: int, stop: int) -> SSAValue:
        """Rows or columns of a value."""
        sizes = list(tensor_type(value).get_shape())
        if stop - start == sizes[axis]:
            return value
        offsets = [0, 0]
        offsets[axis], sizes[axis] = start, stop - start
        props = {"offsets": offsets, "sizes": sizes, "strides": [1, 1]}
        return self._add(SliceOp.make([value], {k: int_array(v) for k, v in props.items()}))

    def turned(self, value: SSAValue) -> SSAValue:
        """Transposed."""
        return self._add(TransposeOp.make([value], {"permutation": int_array([1, 0])}))

    def joined(self, values: list[SSAValue], axis: int) -> SSAValue:
        """Side by side, or one below the other."""
        if len(values) == 1:
            return values[0]
        return self._add(ConcatOp.make(values, {"axis": IntegerAttr(axis, i64)}))

    def _add(self, op: Operation) -> SSAValue:
        self.made.append(op)
        return op.results[0]


class HalveProduct(Rule):
    """rows @ columns that are the same vectors  ->  bands of the upper triangle, and their mirror"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        element = tensor_type(op.results[0]).element_type
        shapes = [tensor_type(v).get_shape() for v in op.operands]
        if element not in (f32, f64) or any(len(s) != 2 or DYNAMIC in s for s in shapes):
            return self.no_match(op, "it is no product of two matrices of floats of known sizes")
        rows, columns = vectors(op.operands[0], 0), vectors(op.operands[1], 1)
        if (rows.matrix, rows.axis) != (columns.matrix, columns.axis):
            return self.no_match(op, "its factors are not of the same vectors")
        first, last = max(rows.first, columns.first), min(rows.last, columns.last)
        results = max(rows.last - rows.first, columns.last - columns.first)
        if min(last - first, shapes[0][1]) < LEAST or 4 * (last - first) < 3 * results:
            return self.no_match(op, "too few vectors are in both factors, or they are too short")
        parts = Parts(op, rows, columns, [])
        whole = _in_bands(parts, first, last)
        rewriter.replace(op, parts.made, [whole])


def _in_bands(parts: Parts, first: int, last: int) -> SSAValue:
    """The product, put together: rows `first` to `last` are in bands, of which each multiplies the columns
    from its own first vector on; what is left of these is the mirror of bands above."""
    rows, columns = parts.rows, parts.columns
    height = -(-(last - first) // (BANDS * ROUND)) * ROUND
    cuts = [*range(first, last, height), last]
    beside = None
    if columns.first < first:
        beside = parts.product((first, last), (columns.first, first))
    made = list[SSAValue]()
    whole = list[SSAValue]()
    for start, stop in pairwise(cuts):
        pieces = list[SSAValue]()
        if beside is not None:
            pieces.append(parts.cut(beside, 0, start - first, stop - first))
        for above, begin in zip(made, cuts, strict=False):
            pieces.append(parts.turned(parts.cut(above, 1, start - begin, stop - begin)))
        made.append(parts.product((start, stop), (start, columns.last)))
        whole.append(parts.joined([*pieces, made[-1]], 1))
    every = (columns.first, columns.last)
    if rows.first < first:
        whole.insert(0, parts.product((rows.first, first), every))
    if last < rows.last:
        whole.append(parts.product((last, rows.last), every))
    return parts.joined(whole, 0)


@dataclass(frozen=True)
class HalveSymmetricProducts(ModulePass):
    """Make of a product whose factors are the same vectors, `transpose(x) @ x` or `x @ transpose(x)`, of all
    of them or of slices, products of bands of rows: each with the columns from its own first vector on. The
    columns before are the transposed results of bands above.

    Of floats on a CPU, where 512 vectors or more, of 512 elements or more, are in both factors and these are
    three quarters of each at least.

    Numeric risk: terms are added in another order, as in any product; what mirrors another result is equal.

    ```mlir
    %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<800x512xf64>) -> tensor<512x800xf64>
    %y = graph.matmul %t, %x : (tensor<512x800xf64>, tensor<800x512xf64>) -> tensor<512x512xf64>
    ```
    becomes
    ```mlir
    %0 = graph.slice %t {...} : (tensor<512x800xf64>) -> tensor<128x800xf64>
    %1 = graph.matmul %0, %x : (tensor<128x800xf64>, tensor<800x512xf64>) -> tensor<128x512xf64>
    %2 = graph.slice %1 {...} : (tensor<128x512xf64>) -> tensor<128x128xf64>
    %3 = graph.transpose %2 {...}
    ...
    %4 = graph.matmul ... : (tensor<128x800xf64>, tensor<800x384xf64>) -> tensor<128x384xf64>
    %5 = graph.concat(%3, %4) {axis = 1 : i64} : ... -> tensor<128x512xf64>
    ...
    %y = graph.concat(%1, %5, ...) {axis = 0 : i64}
    ```
    """

    name = "halve-symmetric-products"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            rewrite(op, [HalveProduct()])
