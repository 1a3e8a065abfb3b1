"""`top_k`: where the first elements of the last dimension, in order, are."""

from __future__ import annotations

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.families.whole_rows import WholeRows


class TopK(WholeRows):
    """`RANGE` of whole rows, `LOAD(OPERANDS, r, k)`, `STORE(OPERANDS, r, j, value)`, `N` elements of a row,
    `K` of which are asked for, and `LARGEST`: 1 for the largest, 0 for the smallest."""

    name = "top_k"
    op = te.TopKOp
    called = "top_k"

    def refuses(self, root: Root) -> str | None:
        """Only `te.top_k`, of any elements."""
        return None if isinstance(root.op, te.TopKOp) else "its root is no top_k"

    def bind(self, binder: Binder) -> None:
        """All of the root's dimensions but the last are rows."""
        op = binder.root.op
        if not isinstance(op, te.TopKOp):
            raise UnsupportedError("a top_k of another root")
        binder.range()
        binder.literal("N", binder.root.reduction[0])
        binder.literal("K", op.k.value.data)
        binder.literal("LARGEST", int(bool(op.largest.value.data)))
        binder.load("LOAD", "r, k", op.x, lambda p: (*binder.index("r", "0", p)[:-1], "k"))
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)
