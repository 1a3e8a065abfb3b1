"""The `dist` dialect: what the ranks of a group do together. Named ops on tensors, one of each on every rank."""

from xdsl.ir import Dialect

from irkit.dialects.dist.ops import (
    OPS,
    AllGatherOp,
    AllReduceOp,
    BroadcastOp,
    CollectiveOp,
    RankOp,
    SizeOp,
)

Dist = Dialect("dist", [*OPS], [])

__all__ = [
    "AllGatherOp",
    "AllReduceOp",
    "BroadcastOp",
    "CollectiveOp",
    "Dist",
    "RankOp",
    "SizeOp",
]
