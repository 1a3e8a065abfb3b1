"""`read-matrix-once`: a large matrix times a column, and a row times the matrix, as one op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import ClassVar, Final

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    f32,
    f64,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects import te
from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, iterators, loop_of, loop_sizes, maps
from irkit.dialects.reassociation import reassociation
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, Tensor, numpy_dtype, tensor_type
from irkit.passes.gpu import device_of, gpu_of
from irkit.passes.tensor.row_ops import start_of
from irkit.remarks import applied, missed

RULE: Final = "ReadMatrixOnce"
LEAST: Final = 1 << 22
"""Bytes of a matrix that the caches next to a core do not keep from one product to the next."""
LONGEST: Final = 1 << 18
"""Bytes of a row: of longer ones too few stay in a cache until the second product reads them."""
FEWEST: Final = 8
"""Rows for each part, and for each part in each: what parts add up to is little beside what they read."""


@dataclass(frozen=True)
class VectorProduct:
    """`op` multiplies a matrix in memory by a vector; of the matrix dimension `kept` remains: 0 where it is
    multiplied by a column, 1 by a row."""

    op: linalg.GenericOp
    matrix: SSAValue
    vector: SSAValue
    kept: int


def vector_product(op: Operation) -> VectorProduct | str:
    """`op` as a product of a matrix and a vector from nothing on, or why it is none."""
    if not isinstance(op, linalg.GenericOp) or not is_contraction(op):
        return "it is no product"
    if iterators(op) != [True, True, False] or DYNAMIC in loop_sizes(op):
        return "it is no product of two matrices of known extents"
    types = {tensor_type(v).element_type for v in (*op.inputs, *op.results)}
    if len(types) != 1 or not types <= {f32, f64}:
        return "it is not of floats of one type, 32 bits or 64"
    if start_of(op) != 0.0:
        return "its sums start from something"
    ones = [d for d in (0, 1) if loop_sizes(op)[d] == 1]
    if len(ones) != 1:
        return "neither factor is a vector, or both are"
    (one,) = ones
    read = [[loop_of(e) for e in m.results] for m in maps(op)[:2]]
    for number, dims in enumerate(read):
        if sorted(dims) == [1 - one, 2] and sorted(read[1 - number]) == [one, 2]:
            return VectorProduct(op, op.inputs[number], op.inputs[1 - number], dims.index(1 - one))
    return "neither factor is read row by row"


def _following(op: Operation) -> Iterator[Operation]:
    """Ops that follow in the block, in order."""
    while (following := op.next_op) is not None:
        yield following
        op = following


def _through_reshapes(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, RESHAPES):
        value = value.owner.src
    return value


@dataclass
class Pair:
    """Two products with one matrix; `chained`: the row is the column's product. `early` is what is to be
    moved behind both."""

    column: VectorProduct
    row: VectorProduct
    chained: bool
    early: list[Operation] = field(default_factory=list[Operation])

    @property
    def behind(self) -> Operation:
        """The later of the two."""
        is_row = self.row.op in _following(self.column.op)
        return self.row.op if is_row else self.column.op


def pair_of(column: VectorProduct, products: Sequence[VectorProduct]) -> Pair | None:
    """A column's product, and one of the same matrix that needs no more of it than its rows, one by one."""
    for row in products:
        if row.kept != 1 or row.matrix is not column.matrix:
            continue
        chained = _through_reshapes(row.vector) is column.op.results[0]
        pair = Pair(column, row, chained)
        ahead = column.op if pair.behind is row.op else row.op
        pair.early = _early(ahead, pair.behind)
        waits = {v.owner for v in pair.behind.operands} & set(pair.early)
        needs_more = waits and not (chained and waits == {row.vector.owner})
        if not needs_more and all(kind_of(op) is not None for op in pair.early):
            return pair
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
class _Writer:
    """Writes a pair as one op and what is taken of that, before the later of the two."""

    pair: Pair
    parts: int

    def run(self) -> None:
        """Everything, in place."""
        pair = self.pair
        given = [pair.column.matrix, self._flat(pair.column.vector)]
        if not pair.chained:
            given.append(self._flat(pair.row.vector))
        both = te.GemvtOp.make(given, {"parts": IntegerAttr(self.parts, i64)})
        self._add(both)
        made = (
            (pair.row.op, self._sums(both)),
            (pair.column.op, self._rows(both)),
        )
        shaped = [(op, self._expanded(value, op)) for op, value in made]
        for op in pair.early:
            op.detach()
            self._add(op)
        for op, value in shaped:
            Rewriter.replace_op(op, [], [value])

    def _add(self, op: Operation) -> SSAValue:
        Rewriter.insert_op(op, InsertPoint.before(self.pair.behind))
        return op.results[0]

    def _made(self, op: Operation) -> SSAValue:
        for inner in op.walk():
            inner.location = self.pair.behind.location  # pyright: ignore[reportAttributeAccessIssue]
        return self._add(op)

    def _flat(self, value: SSAValue) -> SSAValue:
        """A column or a row as a vector."""
        source = value.owner
        if isinstance(source, tensor.ExpandShapeOp) and _rank(source.src) == 1:
            return source.src
        t = tensor_type(value)
        kind = TensorType(t.element_type, [max(t.get_shape())])
        return self._made(_collapse(value, kind))

    def _expanded(self, value: SSAValue, op: Operation) -> SSAValue:
        """A vector in the shape of what an op gives."""
        kind = tensor_type(op.results[0])
        sizes = list(kind.get_shape())
        return self._made(tensor.ExpandShapeOp(value, [], _TOGETHER, sizes, kind))

    def _rows(self, both: te.GemvtOp) -> SSAValue:
        """The column's product: the parts' rows one behind another."""
        if both.rows % both.count == 0:
            whole = self._cut(both.y, [0, 0], [both.count, both.height])
            return self._made(_collapse(whole, _vector(both, both.rows)))
        pieces = list[SSAValue]()
        for part in range(both.count):
            size = both.first(part + 1) - both.first(part)
            cut = self._cut(both.y, [part, 0], [1, size])
            pieces.append(self._made(_collapse(cut, _vector(both, size))))
        return self._made(tensor.ConcatOp(pieces, 0, _vector(both, both.rows)))

    def _sums(self, both: te.GemvtOp) -> SSAValue:
        """The row's product: what the parts' rows add up to."""
        kind = _vector(both, both.columns)
        cut = self._cut(both.y, [0, both.height], [both.count, both.columns])
        element = kind.element_type
        zero = self._made(arith.ConstantOp(FloatAttr(0.0, element)))  # pyright: ignore
        empty = self._made(tensor.EmptyOp([], kind))
        start = self._made(linalg.FillOp([zero], [empty], [kind]))
        block = Block(arg_types=[element, element])
        total = arith.AddfOp(block.args[1], block.args[0])
        block.add_ops([total, linalg.YieldOp(total.result)])
        column, part = AffineDimExpr(0), AffineDimExpr(1)
        return self._made(
            linalg.GenericOp(
                [cut],
                [start],
                Region(block),
                [AffineMapAttr(AffineMap(2, 0, m)) for m in ((part, column), (column,))],
                [IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()],
                [kind],
            )
        )

    def _cut(self, value: SSAValue, offsets: list[int], sizes: list[int]) -> SSAValue:
        kind = TensorType(tensor_type(value).element_type, sizes)
        return self._made(tensor.ExtractSliceOp(value, offsets, sizes, [1, 1], kind))


_TOGETHER: Final = reassociation([[0, 1]])
"""Two dimensions that are one."""


def _rank(value: SSAValue) -> int:
    return len(tensor_type(value).get_shape())


def _vector(both: te.GemvtOp, size: int) -> Tensor:
    return TensorType(tensor_type(both.y).element_type, [size])


def _collapse(value: SSAValue, kind: Tensor) -> tensor.CollapseShapeOp:
    return tensor.CollapseShapeOp.create(
        operands=[value], result_types=[kind], properties={"reassociation": _TOGETHER}
    )


def _parts(product: VectorProduct, veus: int) -> int | str:
    """How many parts a matrix is read in, or why it is read twice."""
    t = tensor_type(product.matrix)
    rows, columns = t.get_shape()
    size = numpy_dtype(t.element_type).itemsize
    if rows * columns * size < LEAST:
        return "the matrix stays in the caches"
    if columns * size > LONGEST:
        return "its rows are too long for a cache"
    if rows < FEWEST * veus:
        return f"it has fewer than {FEWEST} rows for each vEU"
    return veus


def read_block(block: Block, veus: int) -> None:
    """Join the pairs of a function's body, in place."""
    products = list[VectorProduct]()
    for op in block.ops:
        found = vector_product(op)
        if isinstance(found, VectorProduct):
            products.append(found)
        elif isinstance(op, linalg.GenericOp):
            missed(op, RULE, "{}", found)
    for column in [p for p in products if p.kept == 0]:
        parts, pair = _parts(column, veus), pair_of(column, products)
        if isinstance(parts, str):
            missed(column.op, RULE, "{}", parts)
        elif pair is None:
            missed(
                column.op, RULE, "nothing that could be computed with it is a row times the matrix"
            )
        else:
            applied(column.op, RULE, "one op with a row times the matrix, in {} parts", parts)
            products.remove(pair.row)
            _Writer(pair, parts).run()


@dataclass(frozen=True)
class ReadMatrixOnce(ModulePass):
    """Where a matrix of 4 MiB or more is multiplied by a column, and a row by it, compute both as one op, by
    as many parts of its rows as the device has vEUs: each reads its rows from memory once, and again while
    they are in its cache. The row may be the column's product (A^T A x). On a CPU alone; `device` is the
    vDevice that is planned for, without which there is one part.

    Numeric risk: the row's product is added part by part.

    ```mlir
    %z = linalg.generic {... "reduction"} ins(%a, %x : tensor<4000x5000xf64>, tensor<5000x1xf64>) ...
    %r = tensor.expand_shape %v ... : tensor<4000xf64> into tensor<1x4000xf64>
    %y = linalg.generic {... "reduction"} ins(%r, %a : tensor<1x4000xf64>, tensor<4000x5000xf64>) ...
    ```
    becomes, for two vEUs,
    ```mlir
    %0 = te.gemvt %a, %u, %v {parts = 2 : i64}
      : (tensor<4000x5000xf64>, tensor<5000xf64>, tensor<4000xf64>) -> tensor<2x7000xf64>
    %1 = tensor.extract_slice %0[0, 2000] [2, 5000] [1, 1] ...
    %y = linalg.generic {... "reduction"} ins(%1 : tensor<2x5000xf64>) ...
    %2 = tensor.extract_slice %0[0, 0] [2, 2000] [1, 1] ...
    %z = tensor.collapse_shape %2 ...
    ```
    """

    name = "read-matrix-once"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is not None:
            return
        veus = device_of(self.device).veus if self.device else 1
        for function in op.walk():
            if is_straight(function):
                read_block(function.body.block, veus)
