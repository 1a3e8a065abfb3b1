"""`select-tree-strategy`: say how each forest is computed."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.forest_base import STRATEGIES
from irkit.dialects.graph.forest import ForestOp
from irkit.rewriting import Rule, rewrite


@dataclass(frozen=True)
class SelectStrategy(Rule):
    """Give an undecided forest its strategy."""

    strategy: str

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForestOp, rewriter: PatternRewriter, /) -> None:
        if op.strategy.data != "auto":
            return self.no_match(op, "its strategy is {} already", op.strategy.data)
        op.strategy = StringAttr(self.strategy)
        rewriter.notify_op_modified(op)


@dataclass(frozen=True)
class SelectTreeStrategy(ModulePass):
    """Choose how forests are computed: by irkit's own walk, or as one of Hummingbird's tensor programs.

    A walk makes `depth` comparisons per tree and row and touches one leaf; the gemm strategy makes
    2^depth, and both traversals make the walk's comparisons through memory, level by level. On every
    device measured so far the walk wins at every depth, so `auto` becomes `walk`; option `strategy`
    forces another. Later passes (`tree-to-gemm`, …) carry it out. No value changes.

    ```mlir
    %y = graph.forest %x, ... {strategy = "auto", ...}
    ```
    becomes
    ```mlir
    %y = graph.forest %x, ... {strategy = "walk", ...}
    ```
    """

    name = "select-tree-strategy"
    strategy: str = "walk"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.strategy not in STRATEGIES[1:]:
            raise PassFailedException(
                f"argument 'strategy' of pass '{self.name}': expected one of "
                f"{', '.join(STRATEGIES[1:])}, got '{self.strategy}'"
            )
        rewrite(op, [SelectStrategy(self.strategy)])
