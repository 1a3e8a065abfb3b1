"""Equal ops on equal operands are one, those too that the pass `cse` does not know to be free of effects.

A sum starts from a `linalg.fill`, to which upstream ascribes effects, so that `cse` takes no two sums for
one: the gradient of a pool, for one, asks for the largest elements that the pool itself gave.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects import func
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.passes.signatures import signature


def merge_equal(main: func.FuncOp) -> None:
    """Replace heavy ops that are no products, all free of effects, by equal ones before them."""
    known: dict[Hashable, Operation] = {}
    for op in list(main.body.block.ops):
        if not _is_merged(op):
            continue
        before = known.setdefault(signature(op), op)
        if before is not op:
            Rewriter.replace_op(op, [], before.results)


def _is_merged(op: Operation) -> bool:
    # A product may be one of several that accumulate into one another; what is light belongs to what reads
    # it: sums and their starts alone are merged.
    if isinstance(op, linalg.GenericOp) and is_contraction(op):
        return False
    return isinstance(op, linalg.FillOp) or kind_of(op) is Kind.HEAVY
