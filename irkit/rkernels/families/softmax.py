"""`softmax`: over the last dimension."""

from __future__ import annotations

from xdsl.dialects import math as math_dialect
from xdsl.ir import BlockArgument

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.approximations import APPROXIMATE, may_be_approximate
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.fours import fours
from irkit.rkernels.families.whole_rows import WholeRows, rows_in_memory, stored_rows
from irkit.rkernels.work import Part, Work, work


def exponentials(part: Part, count: float) -> Work:
    """So many exponentials of an element, by the C library or not."""
    assert part.root.op is not None
    approximate = may_be_approximate(part.root.op)
    return work(approximate=count * part.lanes) if approximate else work(exp=count)


def stored(root: Root) -> BlockArgument | None:
    """The operand that holds what is raised, row behind row; None of another root, or if it is computed."""
    return stored_rows(root, root.op.x) if isinstance(root.op, te.SoftmaxOp) else None


def in_memory(root: Root) -> tuple[BlockArgument, int] | None:
    """(the operand that holds what is raised, the number of the pointer to the one result, which is the
    softmax), both row behind row; None if what is raised, or what is stored, is computed."""
    return rows_in_memory(root, root.op.x) if isinstance(root.op, te.SoftmaxOp) else None


class Softmax(WholeRows):
    """`RANGE` of whole rows, `LOAD(OPERANDS, r, j)`, `EXP(x)` and `STORE(OPERANDS, r, j, value)`.

    Where the operand is in memory also the pointer `SOURCE`: `LOAD(OPERANDS, r, j)` is `SOURCE[r * J + j]`;
    where the softmax is the one result too `TARGET`: `STORE` writes the value to `TARGET[r * J + j]`. On a
    GPU also `STORE_FOUR` (`irkit/rkernels/binding/fours.py`).
    """

    name = "softmax"
    op = te.SoftmaxOp
    called = "softmax"

    def bind(self, binder: Binder) -> None:
        """The operand is read through what is fused before it."""
        if not isinstance(binder.root.op, te.SoftmaxOp):
            raise UnsupportedError("a softmax of another root")
        binder.range()
        exact = not may_be_approximate(binder.root.op)
        element = tensor_type(binder.root.op.x).element_type
        binder.binding.names["EXP"] = (
            "math.exp" if exact else APPROXIMATE[math_dialect.ExpOp, element]
        )
        source, plain = stored(binder.root), in_memory(binder.root)
        if source is not None:
            binder.binding.names["SOURCE"] = f"p{source.index}"
        if plain is not None:
            binder.binding.names["TARGET"] = f"p{plain[1]}"
        binder.load("LOAD", "r, j", binder.root.op.x, binder.rj_index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)
        if binder.target == "cuda":
            fours(binder, binder.rj_index, of_sums=True)
