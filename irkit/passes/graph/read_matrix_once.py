"""`read-matrix-once`: a large matrix times a column, and a row times the matrix, block of rows by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.graph import AddOp, ExpandOp, MatmulOp, ReshapeOp, TransposeOp
from irkit.dialects.types import DYNAMIC, int_array, ints, numpy_dtype, tensor, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore

LEAST: Final = 1 << 24
"""Bytes of a matrix that a CPU's caches do not keep from one product to the next."""
KEPT: Final = 1 << 20
"""Bytes of a block that they do."""
FEWEST: Final = 4
"""Rows of a block: fewer are not worth a turn."""


@dataclass(frozen=True)
class Pair:
    """`column`: the matrix times a column; `row`: a row times the matrix; `chained`: that row is the column;
    `is_kept`: whether anything else reads the column's product; `early`: what is to be moved behind both."""

    column: MatmulOp
    row: MatmulOp
    chained: bool
    is_kept: bool
    early: list[Operation]

    @property
    def matrix(self) -> SSAValue:
        """What both read."""
        return self.column.operands[0]


@dataclass
class ReadAsItLies(Rule):
    """transpose(A) @ x  ->  x as a row @ A"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        turned, column = op.operands
        transpose, shape = turned.owner, tensor_type(column).get_shape()
        if not isinstance(transpose, TransposeOp) or ints(transpose.permutation) != [1, 0]:
            return self.no_match(op, "its matrix is not transposed")
        if len(shape) != 2 or shape[1] != 1 or DYNAMIC in tensor_type(turned).get_shape():
            return self.no_match(op, "it is no product of a matrix with a column")
        row = ReshapeOp.make([column], {"shape": int_array([1, shape[0]])})
        made = MatmulOp.make([row.results[0], transpose.operands[0]], op.properties)
        made.attributes.update(op.attributes)
        own = int_array(tensor_type(op.results[0]).get_shape())
        rewriter.replace(op, [row, made, ReshapeOp.make([made.results[0]], {"shape": own})])


@dataclass
class ReadMatrixOnce(Rule):
    """z = A @ x; y = r @ A  ->  for blocks of rows: z[b] = A[b] @ x; y += r[b] @ A[b]"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        shapes = [tensor_type(v).get_shape() for v in (*op.operands, *op.results)]
        if any(len(s) != 2 or DYNAMIC in s for s in shapes) or shapes[1][1] != 1:
            return self.no_match(op, "it is no product of a matrix with a column")
        if not isinstance(op.parent_op(), func.FuncOp):
            return self.no_match(op, "it stands in a loop")
        matrix = tensor_type(op.operands[0])
        row_bytes = shapes[0][1] * numpy_dtype(matrix.element_type).itemsize
        rows = min(KEPT // row_bytes, shapes[0][0])
        if shapes[0][0] * row_bytes < LEAST or rows < FEWEST:
            return self.no_match(op, "the matrix stays in the caches, or has long rows")
        pair = _pair(op)
        if pair is None:
            return self.no_match(
                op, "nothing that could be computed with it is a row times the matrix"
            )
        blocks = _Blocks(pair, rows, self.weights)
        y, z = blocks.emit()
        later = pair.row if pair.row in _following(pair.column) else pair.column
        rewriter.insert(blocks.ops, InsertPoint.before(later))
        for reader in pair.early:
            reader.detach()
            rewriter.insert(reader, InsertPoint.before(later))
        if z is not None:
            rewriter.replace(pair.column, [], [z])
        rewriter.replace(pair.row, [], [y])


def _following(op: Operation) -> Iterator[Operation]:
    """Ops that follow in the block, in order."""
    while (following := op.next_op) is not None:
        yield following
        op = following


def _reshapes(value: SSAValue) -> list[Operation]:
    """Ops that gave a value its shape."""
    found: list[Operation] = []
    while isinstance(op := value.owner, ReshapeOp):
        found.append(op)
        value = op.operands[0]
    return found


def _source(chain: Sequence[Operation], value: SSAValue) -> SSAValue:
    return chain[-1].operands[0] if chain else value


def _pair(column: MatmulOp) -> Pair | None:
    """A product with the same matrix that needs no more of the column's than its rows, one by one."""
    matrix, product = column.operands[0], column.results[0]
    for use in matrix.uses:
        row = use.operation
        is_row = isinstance(row, MatmulOp) and use.index == 1 and row.parent is column.parent
        if not is_row or tuple(tensor_type(row.operands[0]).get_shape()[:-1]) != (1,):
            continue
        assert isinstance(row, MatmulOp)
        chain = _reshapes(row.operands[0])
        chained = _source(chain, row.operands[0]) is product
        ahead, behind = (column, row) if row in _following(column) else (row, column)
        own = {*chain, row} if chained else set[Operation]()
        read = [ahead.results[0], *(v for op in chain for v in op.results if chained)]
        is_kept = not chained or any(use.operation not in own for v in read for use in v.uses)
        early = _early(ahead, behind)
        feeds = {v.owner for v in behind.operands} & set(early) - own
        if not feeds and all(is_side_effect_free(op) for op in early):
            return Pair(column, row, chained, is_kept, early)
    return None


def _early(ahead: Operation, behind: Operation) -> list[Operation]:
    """What reads the first of two products, itself or through others, before the second, in order: it must
    come after both."""
    found, reached = list[Operation](), {ahead}
    for op in takewhile(lambda op: op is not behind, _following(ahead)):
        if any(v.owner in reached for inner in op.walk() for v in inner.operands):
            found.append(op)
            reached.add(op)
    return found


@dataclass
class _Blocks:
    """The loop over blocks of so many rows, and what is left of them."""

    pair: Pair
    rows: int
    weights: WeightStore
    ops: list[Operation] = field(default_factory=list[Operation])

    def _add(self, op: Operation) -> SSAValue:
        op.location = self.pair.row.location
        self.ops.append(op)
        return op.results[0]

    def emit(self) -> tuple[SSAValue, SSAValue | None]:
        """The row's product, and the column's if it is read."""
        pair, (count, _) = self.pair, tensor_type(self.pair.matrix).get_shape()
        blocks = count // self.rows
        bounds = [
            self._add(arith.ConstantOp.from_int_and_width(n, IndexType()))
            for n in (0, blocks * self.rows, self.rows)
        ]
        starts = [self._zeros(pair.row), *([self._zeros(pair.column)] if pair.is_kept else [])]
        block = Block(arg_types=[IndexType(), *(s.type for s in starts)])
        outer, self.ops = self.ops, []
        made = self._round(block.args[0], self.rows, list(block.args[1:]))
        block.add_ops([*self.ops, scf.YieldOp(*made)])
        self.ops = outer
        first, end, by = bounds
        self._add(scf.ForOp(first, end, by, starts, Region(block)))
        found: list[SSAValue] = list(self.ops[-1].results)
        rest = count - blocks * self.rows
        if rest:
            found = self._round(blocks * self.rows, rest, found)
        return found[0], found[1] if pair.is_kept else None

    def _zeros(self, like: MatmulOp) -> SSAValue:
        made = tensor_type(like.results[0])
        zero = self._add(constant(np.zeros((), numpy_dtype(made.element_type)), self.weights))
        return self._add(ExpandOp.make([zero], {"shape": int_array(made.get_shape())}))

    def _round(
        self, first: SSAValue | int, rows: int, carried: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """A block of rows from `first` on: what is carried, with theirs."""
        pair, width = self.pair, tensor_type(self.pair.matrix).get_shape()[1]
        part = self._part(pair.matrix, [first, 0], [rows, width])
        column = self._product(pair.column, part, pair.column.operands[1])
        if pair.chained:
            row = self._add(ReshapeOp.make([column], {"shape": int_array([1, rows])}))
        else:
            row = self._part(pair.row.operands[0], [0, first], [1, rows])
        found = [self._add(AddOp.make([carried[0], self._product(pair.row, row, part)], {}))]
        if pair.is_kept:
            moves = isinstance(first, SSAValue)
            kept = InsertSliceOp.get(
                column,
                carried[1],
                [rows, 1],
                [DYNAMIC if moves else first, 0],
                [1, 1],
                [first] if moves else [],
                result_type=carried[1].type,
            )
            found.append(self._add(kept))
        return found

    def _product(self, like: MatmulOp, left: SSAValue, right: SSAValue) -> SSAValue:
        made = MatmulOp.make([left, right], like.properties)
        made.attributes.update(like.attributes)
        return self._add(made)

    def _part(self, x: SSAValue, offsets: list[Any], sizes: list[int]) -> SSAValue:
        kind = tensor(tensor_type(x).element_type, sizes)
        return self._add(ExtractSliceOp(x, offsets, sizes, [1] * len(sizes), kind))


@dataclass(frozen=True)
class ReadMatrixOncePass(ModulePass):
    """Where a matrix of 16 MiB or more is multiplied by a column, and a row by it, compute both in a loop
    over blocks of rows that a core's cache holds: the matrix comes from memory once. The row may be the
    column's product (A^T A x). Before, a transposed matrix times a column becomes a row times the matrix as
    it lies. On a CPU alone; `device` is the vDevice that is planned for.

    Numeric risk: the row's product is added block by block.

    ```mlir
    %z = graph.matmul %a, %x : (tensor<4000x5000xf64>, tensor<5000x1xf64>) -> tensor<4000x1xf64>
    %r = graph.reshape %z {shape = array<i64: 1, 4000>} : (tensor<4000x1xf64>) -> tensor<1x4000xf64>
    %y = graph.matmul %r, %a : (tensor<1x4000xf64>, tensor<4000x5000xf64>) -> tensor<1x5000xf64>
    ```
    becomes, where 26 rows are a block,
    ```mlir
    %y = scf.for %i = %c0 to %c3978 step %c26 iter_args(%s = %zeros) -> (tensor<1x5000xf64>) {
      %b = tensor.extract_slice %a[%i, 0] [26, 5000] [1, 1] : tensor<4000x5000xf64> to tensor<26x5000xf64>
      %z = graph.matmul %b, %x : (tensor<26x5000xf64>, tensor<5000x1xf64>) -> tensor<26x1xf64>
      %r = graph.reshape %z {shape = array<i64: 1, 26>} : (tensor<26x1xf64>) -> tensor<1x26xf64>
      %p = graph.matmul %r, %b : (tensor<1x26xf64>, tensor<26x5000xf64>) -> tensor<1x5000xf64>
      %t = graph.add %s, %p : (tensor<1x5000xf64>, tensor<1x5000xf64>) -> tensor<1x5000xf64>
      scf.yield %t : tensor<1x5000xf64>
    }
    ```
    """

    name = "read-matrix-once"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            rewrite(op, [ReadAsItLies()])
            rewrite(op, [ReadMatrixOnce(weights_of(ctx))])
