"""`canonicalize`: every op's own simplifications, to a fixpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait
from xdsl.transforms.canonicalization_patterns.arith import (
    FoldConstConstOp,
    FoldConstsByReassociation,
)
from xdsl.transforms.dead_code_elimination import region_dce

from irkit.remarks import missed
from irkit.rewriting import rewrite


class _Foldable(RewritePattern):
    """A folding of floats of xDSL's, but a value that its type cannot hold is left to be computed: xDSL
    raises OverflowError for what IEEE rounds to infinity."""

    def __init__(self, pattern: RewritePattern) -> None:
        self._pattern = pattern

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        try:
            self._pattern.match_and_rewrite(op, rewriter)
        except OverflowError:
            missed(op, type(self._pattern).__name__, "its type cannot hold the value")


_OVERFLOWING = (FoldConstConstOp, FoldConstsByReassociation)


class _Patterns:
    """The canonicalization patterns of op classes, looked up once each."""

    def __init__(self) -> None:
        self._known: dict[type[Operation], Sequence[RewritePattern]] = {}

    def __call__(self, op_type: type[Operation]) -> Sequence[RewritePattern]:
        patterns = self._known.get(op_type)
        if patterns is None:
            traits = op_type.get_traits_of_type(HasCanonicalizationPatternsTrait)
            found = [p for trait in traits for p in trait.get_patterns(op_type)]
            patterns = [_Foldable(p) if isinstance(p, _OVERFLOWING) else p for p in found]
            self._known[op_type] = patterns
        return patterns


@dataclass(frozen=True)
class Canonicalize(ModulePass):
    """Apply every op's canonicalization patterns and foldings until nothing changes; dead ops go.

    As xDSL's pass of this name, but a pattern that did not apply says why (`--remarks=missed`), and
    patterns that undo each other are named instead of being applied for ever. Foldings of scalars
    compute; on tensors no value changes.

    ```mlir
    %0 = graph.reshape %x {shape = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<4x2xf32>
    %1 = graph.reshape %0 {shape = array<i64: 2, 4>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
    ```
    becomes
    ```mlir
    %1 = graph.reshape %x {shape = array<i64: 2, 4>} : (tensor<8xf32>) -> tensor<2x4xf32>
    ```
    """

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, _Patterns(), fold_context=ctx, after_walk=region_dce)
