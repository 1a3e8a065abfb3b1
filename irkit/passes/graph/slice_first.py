"""`slice-first`: parts of what an elementwise op gives are computed from parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph import GemmOp, MatmulOp, SliceOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore

ROWS = 8
"""At most so many rows: products of few rows have columns that `group-products` moves."""


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def _why_whole(op: SliceOp) -> str | None:
    """Why what is sliced stays as it is; None if it is elementwise, and its columns are read once."""
    source = op.x.owner
    if not isinstance(source, UnaryOp | BinaryOp):
        return "what it is a part of is not elementwise"
    if len(_shape(op.x)) != 2 or DYNAMIC in _shape(op.x) or _shape(op.x)[0] > ROWS:
        return f"what it is a part of is no matrix of at most {ROWS} rows"
    if not _behind_product(source):
        return "no product is before what it is a part of"
    slices = [use.operation for use in op.x.uses]
    if any(not isinstance(s, SliceOp) or not _is_columns(s) for s in slices):
        return "something else reads what it is a part of"
    columns = [(ints(s.offsets)[1], ints(s.sizes)[1]) for s in slices if isinstance(s, SliceOp)]
    read = {c for first, count in columns for c in range(first, first + count)}
    return None if len(read) == sum(n for _, n in columns) else "parts of it are read twice"


def _is_columns(op: SliceOp) -> bool:
    whole = ints(op.sizes)[0] == _shape(op.x)[0] if len(_shape(op.x)) == 2 else False
    return whole and set(ints(op.strides)) == {1}


def _behind_product(op: Operation) -> bool:
    """Whether an operand is a product, or elementwise behind one."""
    pending, seen = [op], {op}
    while pending:
        owners = {v.owner for v in pending.pop().operands}
        if any(isinstance(owner, MatmulOp | GemmOp) for owner in owners):
            return True
        light = {owner for owner in owners if isinstance(owner, UnaryOp | BinaryOp)} - seen
        seen |= light
        pending += light
    return False


@dataclass
class SliceOfElementwise(Rule):
    """slice(f(x, y)) = f(slice(x), slice(y))"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /):
        if (reason := _why_whole(op)) is not None:
            return self.no_match(op, "{}", reason)
        source = op.x.owner
        assert isinstance(source, UnaryOp | BinaryOp)
        made: list[Operation] = []
        operands = [self._part(v, op, made) for v in source.operands]
        y = type(source).make(operands, dict(source.properties))
        rewriter.replace(op, [*made, y], [y.results[0]])

    def _part(self, value: SSAValue, op: SliceOp, made: list[Operation]) -> SSAValue:
        """The columns of an operand that broadcasts to what `op` slices."""
        shape = _shape(value)
        if not shape or shape[-1] == 1 != _shape(op.x)[1]:
            return value
        (_, first), (_, count) = ints(op.offsets), ints(op.sizes)
        part = self._constant(value, first, count)
        if part is None:
            rows: Sequence[int] = shape[:-1]
            where = {"offsets": [*(0 for _ in rows), first], "sizes": [*rows, count]}
            where["strides"] = [1 for _ in shape]
            part = SliceOp.make([value], {k: int_array(v) for k, v in where.items()})
        made.append(part)
        return part.results[0]

    def _constant(self, value: SSAValue, first: int, count: int) -> ConstantOp | None:
        array = constant_array(value, self.weights)
        return None if array is None else constant(array[..., first : first + count], self.weights)


@dataclass(frozen=True)
class SliceFirst(ModulePass):
    """Compute columns of what an elementwise op gives from columns of its operands.

    Where all that reads the op's result are slices of columns that do not overlap, there is no more to
    compute: the gates of a cell that are split from the sum of two products are then each a sum of columns,
    which `group-products` computes where they are read. Of at most 8 rows, behind a product. Exact.

    ```mlir
    %2 = graph.add %0, %1 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    %3 = graph.slice %2 {offsets = array<i64: 0, 4>, sizes = array<i64: 1, 4>, ...}
    ```
    becomes
    ```mlir
    %2 = graph.slice %0 {offsets = array<i64: 0, 4>, sizes = array<i64: 1, 4>, ...}
    %3 = graph.slice %1 {offsets = array<i64: 0, 4>, sizes = array<i64: 1, 4>, ...}
    %4 = graph.add %2, %3 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    ```
    """

    name = "slice-first"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [SliceOfElementwise(weights_of(ctx))])
