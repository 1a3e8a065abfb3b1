"""`compose-views`: attention reads its operands where they lie, and writes its result where it is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IndexType, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects import te
from irkit.dialects.precision import inherit
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.dialects.views import Sum, View, largest, permutation_of, view_of
from irkit.rewriting import Rule, rewrite


class ReadInPlace(Rule):
    """attention(transpose(slice(x))) → attention(one copy of x), which is computed where it is read."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.AttentionOp, rewriter: PatternRewriter, /):
        made: list[Operation] = []
        operands = [_copied(v, made) for v in op.operands]
        if not made:
            return self.no_match(op, "its operands are in memory, or one step from it")
        new = te.AttentionOp.create(
            operands=operands, result_types=[op.y.type], properties=dict(op.properties)
        )
        inherit(new, op)
        rewriter.replace(op, [*made, new])


def _copied(value: SSAValue, made: list[Operation]) -> SSAValue:
    """`value` as a copy of a part of what it is a view of, if that is more than one step away."""
    view, shape = view_of(value), tensor_type(value).get_shape()
    source = tensor_type(view.source).get_shape()
    if not view.moved or _is_one_step(value, view.source) or DYNAMIC in shape[1:]:
        return value
    if (DYNAMIC in shape) != (source[:1] == (DYNAMIC,)):
        return value
    sizes: list[SSAValue] = []
    if DYNAMIC in shape:
        zero = arith.ConstantOp.from_int_and_width(0, IndexType())
        size = tensor.DimOp(view.source, zero.result)
        made += [zero, size]
        sizes.append(size.result)
    part = _part(view, shape, sizes, made)
    empty = tensor.EmptyOp(sizes, tensor_type(value))
    element, rank = tensor_type(value).element_type, len(shape)
    block = Block(arg_types=[element, element])
    block.add_op(linalg.YieldOp(block.args[0]))
    read = AffineMap(rank, 0, tuple(Sum(s.factors).affine() for s in view.index))
    copy = linalg.GenericOp(
        [part],
        [empty.tensor],
        Region(block),
        ArrayAttr(AffineMapAttr(m) for m in (read, AffineMap.identity(rank))),
        ArrayAttr([IteratorTypeAttr.parallel()] * rank),
        [value.type],
    )
    made += [empty, copy]
    return copy.results[0]


def _part(
    view: View, shape: Sequence[int], dynamic: Sequence[SSAValue], made: list[Operation]
) -> SSAValue:
    """The box of the source that a view reads: loops of the copy run over all of it."""
    source = tensor_type(view.source)
    offsets = [s.offset for s in view.index]
    sizes = [
        DYNAMIC if n == DYNAMIC else 1 + int(largest(Sum(s.factors), shape))
        for s, n in zip(view.index, source.get_shape(), strict=True)
    ]
    if tuple(sizes) == source.get_shape():
        return view.source
    result = TensorType(source.element_type, sizes)
    given = [dynamic[0] if n == DYNAMIC else n for n in sizes]
    part = tensor.ExtractSliceOp(view.source, offsets, given, [1] * len(sizes), result)
    made.append(part)
    return part.results[0]


def _is_one_step(value: SSAValue, source: SSAValue) -> bool:
    """Whether it is a part of the source, or one copy of it or of a part."""
    op = value.owner
    if isinstance(op, linalg.GenericOp):
        (value,) = op.inputs
        op = value.owner
    return value is source or (isinstance(op, tensor.ExtractSliceOp) and op.source is source)


class WriteInPlace(Rule):
    """transpose(attention(q, k, v)) → attention(q, k, v), the result in another order."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /):
        attention = op.inputs[0].owner if op.inputs else None
        if not isinstance(attention, te.AttentionOp):
            return self.no_match(op, "it reads no attention")
        if len(list(attention.y.uses)) != 1:
            return self.no_match(op, "something else reads the attention's result")
        moved = permutation_of(op)
        if moved is None:
            return self.no_match(op, "it is no transposition")
        shape = tensor_type(op.results[0]).get_shape()
        if moved[-1] != len(moved) - 1 or DYNAMIC in shape[1:]:
            return self.no_match(op, "it moves the last dimension, or the batch from the front")
        order = int_array([attention.order[d] for d in moved])
        new = te.AttentionOp.make(
            attention.operands, {**attention.properties, "permutation": order}
        )
        inherit(new, attention)
        rewriter.insert(new, InsertPoint.before(attention))
        rewriter.replace(op, [], [new.y])
        rewriter.erase(attention)


@dataclass(frozen=True)
class ComposeViews(ModulePass):
    """Let attention read its operands where they lie, and write its result in the order that is wanted.

    Slices, transpositions and reshapes between what is computed and `te.attention` become one copy, which
    `form-roperators` computes where it is read: queries, keys and values are then parts of one product, in
    its own order. A transposition of the result becomes the attention's `permutation`. No value changes.

    ```mlir
    %1 = tensor.extract_slice %0[0, 64] [10, 32] [1, 1] : tensor<10x96xf32> to tensor<10x32xf32>
    %2 = tensor.expand_shape %1 [[0], [1, 2]] : tensor<10x32xf32> into tensor<10x4x8xf32>
    %v = linalg.generic {maps = [(h, i, e) -> (i, h, e), (h, i, e) -> (h, i, e)]} ins(%2)
    %3 = te.attention %q, %k, %v {scale = 0.35 : f64} : (...) -> tensor<4x10x8xf32>
    %4 = linalg.generic {maps = [(i, h, e) -> (h, i, e), (i, h, e) -> (i, h, e)]} ins(%3)
    ```
    becomes
    ```mlir
    %1 = tensor.extract_slice %0[0, 64] [10, 32] [1, 1] : tensor<10x96xf32> to tensor<10x32xf32>
    %v = linalg.generic {maps = [(h, i, e) -> (i, h * 8 + e), (h, i, e) -> (h, i, e)]} ins(%1)
    %4 = te.attention %q, %k, %v {scale = 0.35 : f64, permutation = array<i64: 1, 0, 2>}
      : (...) -> tensor<10x4x8xf32>
    ```
    """

    name = "compose-views"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [ReadInPlace(), WriteInPlace()])
        for inner in reversed(list(op.walk())):
            if kind_of(inner) is not None and not any(r.uses for r in inner.results):
                Rewriter.erase_op(inner)
