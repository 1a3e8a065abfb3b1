"""The meaning of collective ops in NumPy, from the operands of all ranks; and who the others are.

`meeting` is the group that the thread that interprets belongs to: a group of one where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

import numpy as np

from irkit.dialects.dist.ops import AllGatherOp, AllReduceOp, BroadcastOp, CollectiveOp, RankOp
from irkit.errors import InvalidInputError
from irkit.ranks import Alone, Meeting, reduced
from irkit.weights import Array

ALONE = Alone()
MEETING: ContextVar[Meeting] = ContextVar("MEETING", default=ALONE)


def collective(op: CollectiveOp, operands: Sequence[Array]) -> list[Array]:
    """The result of a collective op on this rank. Raises InvalidInputError where ranks bring arrays of other
    shapes, or the op is of another number of ranks."""
    member = MEETING.get()
    if not operands:
        return [np.array(member.rank if isinstance(op, RankOp) else member.size, np.int64)]
    check_ranks(op, member.size)
    brought = member.exchange(operands[0])
    kinds = [f"{a.dtype}{list(a.shape)}" for a in brought]
    if len(set(kinds)) > 1:
        told = ", ".join(f"rank {n}: {kind}" for n, kind in enumerate(kinds))
        raise InvalidInputError(f"'{op.name}' of arrays that differ: {told}")
    if isinstance(op, AllGatherOp):
        return [np.stack(brought)]
    if isinstance(op, BroadcastOp):
        return [brought[op.root.value.data].copy()]
    assert isinstance(op, AllReduceOp)
    return [reduced(brought, op.kind.data)]


def check_ranks(op: CollectiveOp, size: int) -> None:
    """Raises InvalidInputError where an op is of more or fewer ranks than there are."""
    if isinstance(op, AllGatherOp) and op.size.value.data != size:
        raise InvalidInputError(f"'{op.name}' of {op.size.value.data} ranks in a group of {size}")
    if isinstance(op, BroadcastOp) and op.root.value.data >= size:
        raise InvalidInputError(f"'{op.name}' from rank {op.root.value.data} in a group of {size}")
