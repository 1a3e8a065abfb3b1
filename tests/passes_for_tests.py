"""Passes with known faults, for tests of the driver. Only the test harness registers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.utils.exceptions import PassFailedException

from irkit.context import resource_name, weights_of
from irkit.dialects.graph import AddOp, MulOp, NegOp, ReluOp, SubOp
from irkit.dialects.task import AppendOp
from irkit.rewriting import Rule, rewrite


class CrashPass(ModulePass):
    """Raise an exception that is no diagnostic."""

    name = "test-crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ZeroDivisionError("test-crash always does this")


class CrashOnReluPass(ModulePass):
    """Raise an exception that is no diagnostic if there is a relu."""

    name = "test-crash-on-relu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, ReluOp):
                raise ZeroDivisionError(f"here is {inner.y.type}")


class CrashOnWeightsPass(ModulePass):
    """Raise at the first weight that is there, naming its sum."""

    name = "test-crash-on-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if (name := resource_name(inner)) is not None:
                raise ValueError(f"sum of {name} is {weights_of(ctx)[name].sum()}")


class FailPass(ModulePass):
    """Fail as a pass may."""

    name = "test-fail"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailedException("this module is not for me")


class BreakDominancePass(ModulePass):
    """Move the first op of each function behind the second."""

    name = "test-break-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                first = function.body.block.first_op
                assert first is not None
                assert first.next_op is not None
                second = first.next_op
                first.detach()
                function.body.block.insert_op_after(first, second)


class BreakTypesPass(ModulePass):
    """Put an attribute where an op takes none of that kind."""

    name = "test-break-op"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                function.properties["sym_visibility"] = UnitAttr()


class ChangeMeaningPass(ModulePass):
    """Turn additions into multiplications."""

    name = "test-change-meaning"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for add in list(op.walk()):
            if isinstance(add, AddOp) and add.parent is not None:
                mul = MulOp.make([add.lhs, add.rhs])
                add.parent.insert_op_before(mul, add)
                add.y.replace_all_uses_with(mul.y)
                add.detach()
                add.erase()


class SwapReadsPass(ModulePass):
    """Have each append read its operands in the opposite order."""

    name = "test-swap-reads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for append in op.walk():
            if isinstance(append, AppendOp):
                first = len(append.waits)
                for number, value in enumerate(reversed(list(append.reads))):
                    append.operands[first + number] = value


class LoseAttributePass(ModulePass):
    """Put an attribute on appends, which their custom form has no place for."""

    name = "test-lose-attribute"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for append in op.walk():
            if isinstance(append, AppendOp):
                append.attributes["lost"] = UnitAttr()


@dataclass(frozen=True)
class MarkPass(ModulePass):
    """Mark every relu with an attribute, so that a change shows."""

    name = "test-mark"
    label: str = "seen"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for relu in op.walk():
            if isinstance(relu, ReluOp):
                relu.attributes["mark"] = StringAttr(self.label)


class AddToSub(Rule):
    """x + y = x - (-y)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /) -> None:
        negative = NegOp.make([op.rhs])
        rewriter.replace(op, [negative, SubOp.make([op.lhs, negative.y])])


class SubToAdd(Rule):
    """x - (-y) = x + y"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SubOp, rewriter: PatternRewriter, /) -> None:
        if not isinstance(negative := op.rhs.owner, NegOp):
            return self.no_match(op, "what is taken away is no negation")
        rewriter.replace(op, [AddOp.make([op.lhs, negative.x])])


class UndoEachOtherPass(ModulePass):
    """Two patterns of which each undoes the other."""

    name = "test-undo-each-other"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [AddToSub(), SubToAdd()])


class SwapOperands(Rule):
    """x + y = y + x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, AddOp.make([op.rhs, op.lhs]))


class ForEverPass(ModulePass):
    """A pattern that applies to its own result."""

    name = "test-for-ever"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [SwapOperands()])


class HalfLowerPass(ModulePass):
    """Claims to lower to tensor level, and leaves every op as it is."""

    name = "test-half-lower"
    requires: ClassVar[tuple[str, ...]] = ("graph",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


TEST_PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    p.name: lambda p=p: p
    for p in (
        CrashPass,
        CrashOnReluPass,
        CrashOnWeightsPass,
        FailPass,
        BreakDominancePass,
        BreakTypesPass,
        ChangeMeaningPass,
        LoseAttributePass,
        SwapReadsPass,
        MarkPass,
        UndoEachOtherPass,
        ForEverPass,
        HalfLowerPass,
    )
}
