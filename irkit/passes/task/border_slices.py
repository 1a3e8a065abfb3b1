"""Slices of what was put together of slices that are put into the same: edges that repeat their neighbours.

`p[:, 0] = p[:, 1]` behind `p[1:-1, 1:-1] = ...` reads what that made, and so would be a launch that copies
all of p. In one launch with it each element of the edge is computed twice, and all others once.
"""

from __future__ import annotations

import math
from typing import Final

from xdsl.dialects import func, tensor
from xdsl.ir import Operation

from irkit.dialects.types import DYNAMIC, tensor_type

SHARE: Final = 8
"""An edge has at most one of so many elements."""


def border_slices(main: func.FuncOp) -> set[Operation]:
    """Slices that nothing reads but an insertion into what they are slices of, which was made by one."""
    return {
        op
        for op in main.body.block.ops
        if isinstance(op, tensor.ExtractSliceOp)
        and isinstance(op.source.owner, tensor.InsertSliceOp)
        and _is_border(op)
    }


def _is_border(op: tensor.ExtractSliceOp) -> bool:
    users = [use.operation for use in op.result.uses]
    whole, part = (tensor_type(v).get_shape() for v in (op.source, op.result))
    if op.offsets or op.sizes or op.strides or DYNAMIC in whole or len(part) != len(whole):
        return False
    if SHARE * math.prod(part) > math.prod(whole):
        return False
    return len(users) == 1 and _repeats(users[0], op)


def _repeats(user: Operation, op: tensor.ExtractSliceOp) -> bool:
    """Whether `user` puts the slice into what it is one of."""
    inserts = isinstance(user, tensor.InsertSliceOp)
    return inserts and user.source is op.result and user.dest is op.source
