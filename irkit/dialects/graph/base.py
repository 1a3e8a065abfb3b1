"""What every graph op shares beside its typing rule: its canonicalization; and extents of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation
from xdsl.irdl import traits_def
from xdsl.traits import HasCanonicalizationPatternsTrait, Pure

from irkit.dialects.inference import InferredOp
from irkit.dialects.types import DYNAMIC

if TYPE_CHECKING:
    from xdsl.pattern_rewriter import RewritePattern


class GraphCanonicalization(HasCanonicalizationPatternsTrait):
    """Hands `canonicalize` the op's line of the table in `canonicalization.py`."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        from irkit.dialects.graph.canonicalization import PATTERNS

        return PATTERNS.get(op, ())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


class GraphOp(InferredOp):
    """A pure op on tensors, of a meaning that its dialect states (`irkit.dialects.graph.semantics`)."""

    traits = traits_def(Pure(), GraphCanonicalization())


def product(shape: Sequence[int]) -> int:
    """Number of elements; DYNAMIC if any dimension is."""
    total = 1
    for s in shape:
        if s == DYNAMIC:
            return DYNAMIC
        total *= s
    return total


def window_output(
    size: int, kernel: int, stride: int, dilation: int, before: int, after: int
) -> int:
    """Output extent of a sliding window (floor mode)."""
    if size == DYNAMIC:
        return DYNAMIC
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1
