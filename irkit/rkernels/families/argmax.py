"""`argmax`: the first largest of the last dimension."""

from __future__ import annotations

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.family import Family


class Argmax(Family):
    """`RANGE`, `LOAD(OPERANDS, r, k)`, `STORE(OPERANDS, r, value)` and `K0`."""

    name = "argmax"

    def refuses(self, root: Root) -> str | None:
        """Only `te.argmax`."""
        return None if isinstance(root.op, te.ArgmaxOp) else "its root is no argmax"

    def bind(self, binder: Binder) -> None:
        """All of the root's dimensions are rows."""
        if not isinstance(binder.root.op, te.ArgmaxOp):
            raise UnsupportedError("an argmax of another root")
        binder.range()
        binder.literal("K0", binder.root.reduction[0])
        binder.load("LOAD", "r, k", binder.root.op.x, lambda p: (*binder.index("r", "0", p), "k"))
        binder.store("r, acc", lambda p: binder.index("r", "0", p), binder.accumulated)
