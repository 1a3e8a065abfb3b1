"""`gemvt`: both products with a matrix, by parts of its rows."""

from __future__ import annotations

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.families.whole_rows import WholeRows


class Gemvt(WholeRows):
    """`RANGE` of parts, `PART(r)`: first and last row of one, `LOAD_A(OPERANDS, i, k)`,
    `LOAD_X(OPERANDS, k)`, `LOAD_R(OPERANDS, i, z)`: what row i is multiplied by, its own product being z, and
    `STORE(OPERANDS, r, j, value)`; `HEIGHT` rows of the largest part, `COLUMNS` of the matrix."""

    name = "gemvt"
    op = te.GemvtOp
    called = "pair of products with a matrix"

    def bind(self, binder: Binder) -> None:
        """A part is a row of the root."""
        op = binder.root.op
        if not isinstance(op, te.GemvtOp):
            raise UnsupportedError("products with a matrix of another root")
        binder.range()
        binder.literal("HEIGHT", op.height)
        binder.literal("COLUMNS", op.columns)
        rows, parts = op.rows, op.count
        bounds = f"return r * {rows} // {parts}, (r + 1) * {rows} // {parts}"
        binder.binding.function("PART", "r", [bounds])
        binder.load("LOAD_A", "i, k", op.a, lambda p: ("i", "k"))
        binder.load("LOAD_X", "k", op.x, lambda p: ("k",))
        if op.r is not None:
            binder.load("LOAD_R", "i, z", op.r, lambda p: ("i",))
        else:
            operands = binder.binding.operands
            binder.binding.function("LOAD_R", f"{operands}, i, z", ["return z"])
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)

    def operations(self, root: Root, rows: int) -> float:
        """Two multiply-adds for each element of the matrix."""
        assert isinstance(root.op, te.GemvtOp)
        return 4.0 * root.op.rows * root.op.columns
