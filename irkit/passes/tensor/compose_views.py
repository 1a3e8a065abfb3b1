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
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects import te
from irkit.dialects.linalg_generic import is_contraction, is_elementwise, maps
from irkit.dialects.precision import inherit
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.dialects.views import Sum, View, largest, permutation_of, view_of
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite


class ReadInPlace(Rule):
    """attention(transpose(slice(x))) → attention(one copy of x), which is computed where it is read."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: te.AttentionOp | te.AttentionQueryGradientOp | te.AttentionKeyGradientOp,
        rewriter: PatternRewriter,
        /,
    ):
        made: list[Operation] = []
        operands = [_copied(v, made) for v in op.operands]
        if not made:
            return self.no_match(op, "its operands are in memory, or one step from it")
        new = type(op).create(
            operands=operands, result_types=[op.y.type], properties=dict(op.properties)
        )
        inherit(new, op)
        rewriter.replace(op, [*made, new])


def _copied(value: SSAValue, made: list[Operation]) -> SSAValue:
    """`value` as a copy of a part of what it is a view of, widened as it was, if that is more than one step
    away."""
    cast = _cast_alone(value)
    narrow = value if cast is None else cast.inputs[0]
    view, shape = view_of(narrow), tensor_type(value).get_shape()
    source = tensor_type(view.source).get_shape()
    if not view.moved or _is_one_step(narrow, view.source) or DYNAMIC in shape[1:]:
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
    rank = len(shape)
    block = Block(arg_types=[tensor_type(v).element_type for v in (narrow, value)])
    read_as = block.args[0]
    if cast is not None:
        wide = arith.ExtFOp(read_as, tensor_type(value).element_type)
        block.add_op(wide)
        read_as = wide.result
    block.add_op(linalg.YieldOp(read_as))
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


def _cast_alone(value: SSAValue, to: type[Operation] = arith.ExtFOp) -> linalg.GenericOp | None:
    """The op that gives `value` where it casts one tensor, element by element, to other floats by `to`."""
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op) or len(op.inputs) != 1:
        return None
    body = list(op.body.block.ops)
    identity = AffineMap.identity(tensor_type(value).get_num_dims())
    if len(body) != 2 or not isinstance(body[0], to) or set(maps(op)) != {identity}:
        return None
    return op if body[0].operands[0] is op.body.block.args[0] else None


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
    """transpose(attention(q, k, v)) → attention(q, k, v), the result in another order, rounded or not."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /):
        if not op.inputs:
            return self.no_match(op, "it reads nothing")
        cast = _cast_alone(op.inputs[0], arith.TruncFOp)
        attention = (op if cast is None else cast).inputs[0].owner
        if not isinstance(attention, te.AttentionOp):
            return self.no_match(op, "it reads no attention")
        if any(len(list(v.uses)) != 1 for v in (attention.y, op.inputs[0])):
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
        if cast is None:
            rewriter.replace(op, [], [new.y])
        else:
            rewriter.replace(op, [_cast_of(new.y, cast, op)])
            rewriter.erase(cast)
        rewriter.erase(attention)


def _cast_of(value: SSAValue, cast: linalg.GenericOp, moved: linalg.GenericOp) -> linalg.GenericOp:
    """`cast` of `value`, in the place of what `moved` its result."""
    rank = tensor_type(value).get_num_dims()
    return linalg.GenericOp(
        [value],
        moved.outputs,
        cast.body.clone(),
        ArrayAttr([AffineMapAttr(AffineMap.identity(rank))] * 2),
        ArrayAttr([IteratorTypeAttr.parallel()] * rank),
        [moved.results[0].type],
    )


_FEWEST = 32
"""Rows, columns and terms of a product that copies its factors anyway; with fewer, they are made first."""


class MultiplyTurned(Rule):
    """product(transpose(x), y) → the same product, which reads x where it lies."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /):
        if not is_contraction(op):
            return self.no_match(op, "it is no contraction")
        found = list(maps(op))
        if not all(_is_matrix_of_loops(m) for m in found):
            return self.no_match(op, "its factors are windows, or read in part")
        sizes = {
            e: size
            for value, amap in zip(op.operands, found, strict=True)
            for e, size in zip(amap.results, tensor_type(value).get_shape(), strict=True)
        }
        if len(sizes) != 3 or any(size < _FEWEST for size in sizes.values()):
            return self.no_match(op, "it is no product of two large matrices")
        inputs = list(op.inputs)
        for number, value in enumerate(inputs):
            source = _turned_for(value)
            if source is not None:
                inputs[number] = source
                found[number] = AffineMap(3, 0, tuple(reversed(found[number].results)))
        if inputs == list(op.inputs):
            return self.no_match(op, "neither factor is a transposition that nothing else reads")
        new = linalg.GenericOp(
            inputs,
            op.outputs,
            op.body.clone(),
            ArrayAttr(AffineMapAttr(m) for m in found),
            op.iterator_types,
            [r.type for r in op.results],
        )
        new.attributes |= op.attributes
        rewriter.replace(op, new)


def _is_matrix_of_loops(amap: AffineMap) -> bool:
    """Whether each of two indices is a loop of its own."""
    return len(set(amap.results)) == len(amap.results) == 2 and all(
        isinstance(e, AffineDimExpr) for e in amap.results
    )


def _turned_for(value: SSAValue) -> SSAValue | None:
    """What `value` is the transposition of, if one product alone reads it."""
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or len(list(value.uses)) != 1:
        return None
    return op.inputs[0] if permutation_of(op) == [1, 0] else None


@dataclass(frozen=True)
class ComposeViews(ModulePass):
    """Let attention read its operands where they lie, and write its result in the order that is wanted;
    on a CPU, let products of matrices read a transposed factor where it lies.

    Slices, transpositions and reshapes between what is computed and `te.attention` become one copy, which
    `form-roperators` computes where it is read: queries, keys and values are then parts of one product, in
    its own order. A transposition of the result becomes the attention's `permutation`. Casts of 16-bit floats
    that stand between stay, next to the attention. A product of matrices of which none has fewer than 32 rows
    or columns copies blocks of both, however they lie: for a `device` that is no GPU, a transposition that it
    alone reads is not made first. No value changes.

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
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        turned = [MultiplyTurned()] if gpu_of(self.device) is None else []
        rewrite(op, [ReadInPlace(), WriteInPlace(), *turned])
        for inner in reversed(list(op.walk())):
            if kind_of(inner) is not None and not any(r.uses for r in inner.results):
                Rewriter.erase_op(inner)
