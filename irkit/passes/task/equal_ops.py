"""Equal ops on equal operands are one, those too that the pass `cse` does not know to be free of effects.

A sum starts from a `linalg.fill`, to which upstream ascribes effects, so that `cse` takes no two sums for
one: the gradient of a pool, for one, asks for the largest elements that the pool itself gave.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator
from xdsl.transforms.common_subexpression_elimination import KnownOps

from irkit.dialects.task import LaunchOp
from irkit.dialects.tensor_ops.registry import kind_of


def merge_equal(main: func.FuncOp) -> None:
    """Replace ops of the tensor level, which are all free of effects, by equal ones before them."""
    known = KnownOps()
    for op in list(main.body.block.ops):
        if not _is_merged(op):
            continue
        before = known.get(op)
        if before is None:
            known[op] = op
        else:
            Rewriter.replace_op(op, [], before.results)


def _is_merged(op: Operation) -> bool:
    plain = not op.has_trait(IsTerminator) and not isinstance(op, LaunchOp)
    return plain and kind_of(op) is not None
