"""Rules that ask a condition once. Applied by `canonicalize`, and exact: elements are chosen, never computed.

What a mask picked and is written through the same mask again, in loops above all, asks for it at every step.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.graph.logic import AndOp, WhereOp
from irkit.rewriting import Rule


class WhereOfOne(Rule):
    """where(c, x, x) = x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: WhereOp, rewriter: PatternRewriter, /):
        if op.x is not op.y:
            return self.no_match(op, "it chooses between two values")
        if op.x.type != op.z.type:
            return self.no_match(op, "the type changes from {} to {}", op.x.type, op.z.type)
        rewriter.replace(op, [], [op.x])


class WhereOfWhere(Rule):
    """where(c, where(c, a, b), d) = where(c, a, d), and where(c, a, where(c, b, d)) alike"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: WhereOp, rewriter: PatternRewriter, /):
        x, y = _if_true(op.x, op.condition), _if_false(op.y, op.condition)
        if x is op.x and y is op.y:
            return self.no_match(op, "neither value is chosen by the same condition")
        rewriter.replace(op, WhereOp.make([op.condition, x, y]))


class AndOfSame(Rule):
    """and(c, and(c, x)) = and(c, x), in any order; and(c, where(c, a, b)) = and(c, a)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AndOp, rewriter: PatternRewriter, /):
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            inner = other.owner
            if isinstance(inner, AndOp) and one in inner.operands and other.type == op.y.type:
                return rewriter.replace(op, [], [other])
            if (x := _if_true(other, one)) is not other:
                return rewriter.replace(op, AndOp.make([one, x]))
        self.no_match(op, "neither operand holds only where the other does")


def _if_true(value: SSAValue, condition: SSAValue) -> SSAValue:
    """What `value` is where a condition holds, if that is of its type."""
    chosen = _chosen_by(value, condition)
    return chosen.x if chosen is not None and chosen.x.type == value.type else value


def _if_false(value: SSAValue, condition: SSAValue) -> SSAValue:
    """What `value` is where a condition does not hold, if that is of its type."""
    chosen = _chosen_by(value, condition)
    return chosen.y if chosen is not None and chosen.y.type == value.type else value


def _chosen_by(value: SSAValue, condition: SSAValue) -> WhereOp | None:
    owner = value.owner
    return owner if isinstance(owner, WhereOp) and owner.condition is condition else None
