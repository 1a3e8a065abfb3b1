"""Locations through rewrites, and the dominance check on IR that no parser would make."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.diagnostics.locations import adopt_locations, locations_kept
from irkit.driver.verification.dominance import dominance_violation
from irkit.driver.verification.verifier import check_module

HERE = FileLineColLoc(StringAttr("a.mlir"), IntAttr(3), IntAttr(5))


class DoubleTheSum(RewritePattern):
    """a + b = (a + b) + (0 + 0), by two new ops below the result."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddiOp, rewriter: PatternRewriter, /):
        if isinstance(op.rhs.owner, AddiOp) or isinstance(op.lhs.owner, AddiOp):
            return
        if not any(isinstance(use.operation, ReturnOp) for use in op.result.uses):
            return
        zero = AddiOp(op.lhs, op.rhs)
        total = AddiOp(zero, zero)
        rewriter.replace(op, [zero, total])


def function() -> tuple[ModuleOp, AddiOp]:
    one = ConstantOp.from_int_and_width(1, i32)
    total = AddiOp(one, one)
    total.location = HERE
    block = Block([one, total, ReturnOp(total)])
    return ModuleOp([FuncOp("f", ([], [i32]), Region(block))]), total


def test_replacements_inherit_the_location_of_what_they_replace():
    module, _ = function()
    with locations_kept():
        PatternRewriteWalker(DoubleTheSum()).rewrite_module(module)
    sums = [op for op in module.walk() if isinstance(op, AddiOp)]
    assert len(sums) == 2
    assert [op.location for op in sums] == [HERE, HERE]


def test_the_listener_is_as_before_afterwards():
    before = PatternRewriterListener.handle_operation_replacement
    with pytest.raises(ZeroDivisionError), locations_kept():
        raise ZeroDivisionError
    assert PatternRewriterListener.handle_operation_replacement is before


def test_an_op_made_by_hand_adopts_the_location_of_its_user():
    module, _ = function()
    adopt_locations(module)
    (one,) = (op for op in module.walk() if isinstance(op, ConstantOp))
    assert one.location == HERE


def test_no_location_is_invented():
    module, total = function()
    total.location = UnknownLoc()
    adopt_locations(module)
    assert all(isinstance(op.location, UnknownLoc) for op in module.walk())


def test_a_value_of_a_sibling_region_does_not_dominate():
    module, total = function()
    other = FuncOp("g", ([], [i32]), Region(Block([ReturnOp(total.result)])))
    module.body.block.add_op(other)
    violation = dominance_violation(module)
    assert violation is not None
    assert violation.value is total.result
    with pytest.raises(UserError, match="out of its IsolatedFromAbove parent"):
        check_module(module)  # xDSL's own check speaks first


def test_a_valid_module_has_no_violation():
    module, _ = function()
    assert dominance_violation(module) is None
    check_module(module)
