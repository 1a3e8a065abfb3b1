"""`scatter_add`: rows added to the places that indices name, in the order of the indices."""

from __future__ import annotations

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.rkernels.family import Family, of_floats


class ScatterAdd(Family):
    """`RANGE` of places r and columns j, `N` updates, `INDEX(OPERANDS, n)`, the place of the n-th, which is
    kept inside, `UPDATE(OPERANDS, n, j)`, `INIT(OPERANDS, r, j)` and `STORE(OPERANDS, r, j, acc)`."""

    name = "scatter_add"

    def refuses(self, root: Root) -> str | None:
        """Only `te.scatter_add`."""
        if not isinstance(root.op, te.ScatterAddOp):
            return "its root is no scatter_add"
        return of_floats(root)

    def operations(self, root: Root, rows: int) -> float:
        """An addition for each element of an update."""
        return float(updates_of(root) * root.parallel[-1])

    def bind(self, binder: Binder) -> None:
        """What is added is read from memory; indices may be computed."""
        op = binder.root.op
        if not isinstance(op, te.ScatterAddOp):
            raise UnsupportedError("a scatter_add of another root")
        binder.range()
        binder.literal("N", updates_of(binder.root))
        printer = ElementPrinter()
        place = printer.element(op.indices, ("n",))
        printer.line(f"return min(max({place}, 0), {binder.root.parallel[0] - 1})")
        binder.binding.function("INDEX", f"{binder.binding.operands}, n", printer.lines)
        binder.load("UPDATE", "n, j", op.updates, lambda p: ("n", "j"))
        binder.load("INIT", "r, j", op.x, binder.rj_index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)


def updates_of(root: Root) -> int:
    """How many rows are added."""
    assert isinstance(root.op, te.ScatterAddOp)
    (count,) = tensor_type(root.op.indices).get_shape()
    return count
