"""Greedy rewriting: patterns that say why they do not apply, and walks that end.

A pattern of irkit's is a `Rule`. Every way out of it either rewrites or is `return self.no_match(op,
"reason")`; a test holds this. `rewrite` runs patterns to their fixpoint and stops those that undo each other.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.folder import Folder
from xdsl.ir import Attribute, Operation, Region
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import InsertPoint
from xdsl.traits import ConstantLike, HasFolder
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from irkit import remarks

# Rewrites of one walk: this many for each op it started with, and some more for a small module.
REWRITES_PER_OP, FEWEST = 100, 1000
# How many of the last rewrites are looked at for what repeats.
WINDOW = 64

DEAD, FOLD = "dead op", "fold"


class Rule(RewritePattern, ABC):
    """A pattern that explains itself. Its name is the class's."""

    def no_match(self, op: Operation, reason: str, *values: object) -> None:
        """Leave `op` alone; `reason` is a format string for `values`, made only if remarks are on."""
        remarks.missed(op, type(self).__name__, reason, *values)


@dataclass(frozen=True)
class Step:
    """One rewrite: by which rule, of which op, which stood where."""

    rule: str
    op: str
    location: Attribute


class FixpointError(Exception):
    """Patterns go on for ever. `cycle` has one step for each of those that repeat, in order."""

    def __init__(self, cycle: Sequence[Step], rewrites: int, ops: int) -> None:
        self.cycle = tuple(cycle)
        names = [f"'{step.rule}'" for step in cycle]
        if len(names) == 1:
            what = f"pattern {names[0]} applies to its own result for ever"
        elif len(names) == 2:
            what = f"patterns {names[0]} and {names[1]} undo each other"
        else:
            what = f"patterns {', '.join(names)} undo one another"
        super().__init__(f"{what}: stopped after {rewrites} rewrites of a module of {ops} ops")


def cycle_of(steps: Sequence[Step]) -> list[Step]:
    """The shortest run of rules that `steps` end by repeating, each rule once; the two most frequent
    rules if nothing repeats exactly."""
    rules = [step.rule for step in steps]
    for period in range(1, len(rules) // 2 + 1):
        if rules[period:] == rules[:-period]:
            last = {step.rule: step for step in steps[-period:]}
            return list(last.values())
    last = {step.rule: step for step in steps}
    return sorted(last.values(), key=lambda s: -rules.count(s.rule))[:2]


PatternsOf = Callable[[type[Operation]], Sequence[RewritePattern]]


class _Greedy(RewritePattern):
    """The first pattern that applies; `rule` is what did the last rewrite."""

    def __init__(self, patterns_of: PatternsOf, fold_context: Context | None) -> None:
        self.rule = ""
        self._patterns_of = patterns_of
        self._folder = None if fold_context is None else Folder(fold_context)
        self._foldable: dict[type[Operation], bool] = {}

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if is_trivially_dead(op):
            self.rule = DEAD
            rewriter.erase(op)
            return
        if self._folder is not None and self._folds(self._folder, op, rewriter):
            self.rule = FOLD
            return
        for pattern in self._patterns_of(type(op)):
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                self.rule = type(pattern).__name__
                return
            if not isinstance(pattern, Rule):
                remarks.missed(op, type(pattern).__name__, "does not apply")

    def _folds(self, folder: Folder, op: Operation, rewriter: PatternRewriter) -> bool:
        foldable = self._foldable.get(type(op))
        if foldable is None:
            # A constant folds to itself: its fold would never end.
            foldable = op.has_trait(HasFolder, value_if_unregistered=False) and not op.has_trait(
                ConstantLike, value_if_unregistered=True
            )
            self._foldable[type(op)] = foldable
        folded = folder.try_fold(op) if foldable else None
        if folded is None:
            return False
        values, ops = folded
        rewriter.replace(op, ops, values)
        return True


class _Walker(PatternRewriteWalker):
    """xDSL's walk, with an end. A pattern's own errors leave it as they are."""

    def __init__(
        self,
        greedy: _Greedy,
        ops: int,
        after_walk: Callable[[Region, PatternRewriterListener], bool] | None,
    ) -> None:
        super().__init__(greedy, post_walk_func=after_walk)
        self._greedy = greedy
        self._ops = ops
        self._limit = FEWEST + REWRITES_PER_OP * ops
        self._rewrites = 0
        self._last: list[Step] = []

    def _process_worklist(self, listener: PatternRewriterListener) -> bool:
        worklist, pattern = self._worklist, self._greedy
        changed, rewriter = False, None
        while worklist:
            op = worklist.pop()
            if rewriter is None:
                rewriter = PatternRewriter(op)
                rewriter.extend_from_listener(listener)
            rewriter.has_done_action = False
            rewriter.current_operation = op
            rewriter.insertion_point = InsertPoint.before(op)
            rewriter.name_hint = None
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                changed = True
                self._count(op)
        return changed

    def _count(self, op: Operation) -> None:
        """A rewrite of `op`, which may be gone, has been done."""
        remarks.applied(op, self._greedy.rule)
        self._rewrites += 1
        if self._rewrites <= self._limit - WINDOW:
            return
        self._last.append(Step(self._greedy.rule, op.name, op.location))
        if self._rewrites >= self._limit:
            raise FixpointError(cycle_of(self._last), self._rewrites, self._ops)


def rewrite(
    module: ModuleOp,
    patterns: Sequence[RewritePattern] | PatternsOf,
    *,
    fold_context: Context | None = None,
    after_walk: Callable[[Region, PatternRewriterListener], bool] | None = None,
) -> bool:
    """Apply patterns to all ops of `module`, in place, until none applies; says whether any did.

    `patterns` may be a function of an op's class. Dead ops go; with `fold_context` ops are folded
    first. `after_walk` runs between walks. Raises FixpointError when patterns undo each other.
    """

    def always(_: type[Operation]) -> Sequence[RewritePattern]:
        assert not callable(patterns)
        return patterns

    greedy = _Greedy(patterns if callable(patterns) else always, fold_context)
    ops = sum(1 for _ in module.walk())
    return _Walker(greedy, ops, after_walk).rewrite_module(module)
