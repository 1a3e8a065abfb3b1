"""Rules that make ops on shapes fewer or simpler. Applied by `canonicalize`.

Each rule's docstring is its equation. No rule computes, so every one is exact. Where a rule does not
apply it says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from irkit.dialects.graph.base import GraphOp, product
from irkit.dialects.graph.choice_rules import AndOfSame, WhereOfOne, WhereOfWhere
from irkit.dialects.graph.elementwise import CastOp
from irkit.dialects.graph.logic import AndOp, WhereOp
from irkit.dialects.graph.shape import (
    ConcatOp,
    ExpandOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
    same_elements,
)
from irkit.dialects.types import DYNAMIC, int_array, ints, is_half, tensor_type
from irkit.rewriting import Rule


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def _reshaped(x: SSAValue, shape: Sequence[int]) -> ReshapeOp:
    return ReshapeOp.make([x], {"shape": int_array(shape)})


def _sliced(
    x: SSAValue, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> SliceOp:
    where = {"offsets": offsets, "sizes": sizes, "strides": strides}
    return SliceOp.make([x], {k: int_array(v) for k, v in where.items()})


def _forward_if_same(rule: Rule, op: GraphOp, rewriter: PatternRewriter) -> None:
    """Replace an op by its operand if the type tells that nothing changes."""
    before, after = op.operands[0].type, op.results[0].type
    if before != after:
        return rule.no_match(op, "the type changes from {} to {}", before, after)
    rewriter.replace(op, [], [op.operands[0]])


def keeps_order(op: TransposeOp) -> bool:
    """Whether a transposition moves only dimensions of size one, so that no element moves."""
    shape = _shape(op.x)
    moved = [p for p in ints(op.permutation) if shape[p] != 1]
    return moved == sorted(moved)


# graph.cast


class CastToOwnType(Rule):
    """cast(x : t) to t = x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter, /):
        _forward_if_same(self, op, rewriter)


class CastOfWidened(Rule):
    """cast(cast(x : f16) to f32) to f16 = x: no number is lost on the way up; bf16 alike"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter, /):
        inner = op.x.owner
        if not isinstance(inner, CastOp):
            return self.no_match(op, "the operand is no cast")
        if inner.to != f32 or inner.x.type != op.y.type or not is_half(op.to):
            return self.no_match(op, "it does not undo a cast of a 16-bit float to f32")
        rewriter.replace(op, [], [inner.x])


# graph.concat


class ConcatOfOne(Rule):
    """concat(x) = x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter, /):
        if len(op.inputs) != 1:
            return self.no_match(op, "{} operands are joined", len(op.inputs))
        rewriter.replace(op, [], [op.inputs[0]])


# graph.expand


class ExpandToOwnShape(Rule):
    """expand(x) to the shape of x = x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ExpandOp, rewriter: PatternRewriter, /):
        _forward_if_same(self, op, rewriter)


# graph.reshape


class ReshapeToOwnShape(Rule):
    """reshape(x) to the shape of x = x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter, /):
        _forward_if_same(self, op, rewriter)


class ReshapeOfRepeated(Rule):
    """reshape(expand(x)) = expand(x) where x is one element"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter, /):
        if not isinstance(inner := op.x.owner, ExpandOp):
            return self.no_match(op, "the operand is no expansion")
        shape = _shape(op.y)
        if _shape(inner.x) != () or DYNAMIC in shape:
            return self.no_match(op, "more than one element is repeated, or so often as rows come")
        rewriter.replace(op, ExpandOp.make([inner.x], {"shape": int_array(shape)}))


class ReshapeOfReshape(Rule):
    """reshape(reshape(x)) = reshape(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter, /):
        if not isinstance(inner := op.x.owner, ReshapeOp):
            return self.no_match(op, "the operand is no reshape")
        if not same_elements(_shape(inner.x), _shape(op.y)):
            return self.no_match(op, "the sizes of the dynamic dimensions do not tell")
        rewriter.replace(op, _reshaped(inner.x, ints(op.shape)))


# graph.slice


class SliceOfWhole(Rule):
    """slice(x) = x where every axis is taken whole and forwards"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /):
        if any(s != 1 for s in ints(op.strides)):
            return self.no_match(op, "an axis has a stride other than 1")
        _forward_if_same(self, op, rewriter)


class SliceOfSlice(Rule):
    """slice(slice(x)) = slice(x): offset a + s·b, stride s·t"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /):
        if not isinstance(inner := op.x.owner, SliceOp):
            return self.no_match(op, "the operand is no slice")
        steps = ints(inner.strides)
        offsets = [
            a + s * b for a, s, b in zip(ints(inner.offsets), steps, ints(op.offsets), strict=True)
        ]
        strides = [s * t for s, t in zip(steps, ints(op.strides), strict=True)]
        rewriter.replace(op, _sliced(inner.x, offsets, ints(op.sizes), strides))


def _held(concat: ConcatOp, unit: int, first: int, last: int) -> tuple[SSAValue, int, int] | None:
    """The operand that holds blocks first..last, the block it starts at and how many it has.

    The operands are counted in blocks of `unit` elements, one operand after the other. None if no
    operand holds them all, or blocks do not end where operands do.
    """
    start = 0
    for value in concat.inputs:
        count, rest = divmod(product(_shape(value)), unit)
        if rest:
            return None
        if first < start + count:
            return (value, start, count) if last < start + count else None
        start += count
    return None


class SliceOfConcat(Rule):
    """slice(concat(…, x, …)) = slice(x) where it falls inside x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /):
        if not isinstance(concat := op.x.owner, ConcatOp):
            return self.no_match(op, "the operand is no concatenation")
        axis, offsets = concat.axis.value.data, ints(op.offsets)
        first, last = _extent(op, axis)
        start = 0
        for value in concat.inputs:
            end = start + _shape(value)[axis]
            if first >= start and last < end:
                offsets[axis] -= start
                sliced = _sliced(value, offsets, ints(op.sizes), ints(op.strides))
                return rewriter.replace(op, sliced)
            start = end
        self.no_match(op, "no one operand of the concatenation holds all of it")


class SliceOfReshapedConcat(Rule):
    """slice(reshape(concat(…, x, …))) = slice(reshape(x)) where it falls inside x

    Only where the operands lie one after the other in row-major order: each dimension before the
    joined axis is 1. The steps of an unrolled recurrence meet the next layer through this rule.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /):
        if not isinstance(reshape := op.x.owner, ReshapeOp):
            return self.no_match(op, "the operand is no reshape")
        concat, shape = reshape.x.owner, list(_shape(op.x))
        if not isinstance(concat, ConcatOp):
            return self.no_match(op, "what is reshaped is no concatenation")
        if DYNAMIC in shape:
            return self.no_match(op, "a dimension is dynamic")
        if product(_shape(concat.y)[: concat.axis.value.data]) != 1:
            return self.no_match(op, "the joined operands do not lie one after the other")
        axis = next((d for d, s in enumerate(shape) if s != 1), 0)
        held = _held(concat, product(shape[axis + 1 :]), *_extent(op, axis))
        if held is None:
            return self.no_match(op, "no one operand of the concatenation holds all of it")
        value, start, shape[axis] = held
        offsets = ints(op.offsets)
        offsets[axis] -= start
        reshaped = _reshaped(value, shape)
        sliced = _sliced(reshaped.y, offsets, ints(op.sizes), ints(op.strides))
        rewriter.replace(op, [reshaped, sliced])


def _extent(op: SliceOp, axis: int) -> tuple[int, int]:
    """First and last position that a slice reads along an axis; the whole of a dynamic one."""
    offset, size, stride = (ints(p)[axis] for p in (op.offsets, op.sizes, op.strides))
    if size == DYNAMIC:
        return 0, -1
    end = offset + (size - 1) * stride
    return min(offset, end), max(offset, end)


# graph.transpose


class TransposeOfOrder(Rule):
    """transpose(x) = reshape(x) where only dimensions of size one move; x if none moves"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /):
        if ints(op.permutation) == list(range(len(_shape(op.x)))):
            return rewriter.replace(op, [], [op.x])
        shape = _shape(op.y)
        if not keeps_order(op):
            return self.no_match(op, "a dimension that is not of size one moves")
        if DYNAMIC in (shape[1:] + _shape(op.x)[1:]):
            return self.no_match(op, "a dimension behind the first is dynamic")
        rewriter.replace(op, _reshaped(op.x, shape))


class TransposeOfTranspose(Rule):
    """transpose(transpose(x)) = transpose(x) by the composed permutation"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /):
        if not isinstance(inner := op.x.owner, TransposeOp):
            return self.no_match(op, "the operand is no transposition")
        before = ints(inner.permutation)
        composed = int_array([before[p] for p in ints(op.permutation)])
        rewriter.replace(op, TransposeOp.make([inner.x], {"permutation": composed}))


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AndOp: (AndOfSame(),),
    CastOp: (CastToOwnType(), CastOfWidened()),
    ConcatOp: (ConcatOfOne(),),
    ExpandOp: (ExpandToOwnShape(),),
    ReshapeOp: (ReshapeToOwnShape(), ReshapeOfRepeated(), ReshapeOfReshape()),
    SliceOp: (SliceOfWhole(), SliceOfSlice(), SliceOfConcat(), SliceOfReshapedConcat()),
    TransposeOp: (TransposeOfOrder(), TransposeOfTranspose()),
    WhereOp: (WhereOfOne(), WhereOfWhere()),
}
"""Op → its rules; graph ops look themselves up here."""
