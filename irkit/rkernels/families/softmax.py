"""`softmax`: over the last dimension."""

from __future__ import annotations

from xdsl.dialects import math as math_dialect

from irkit.dialects import te
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.approximations import APPROXIMATE, may_be_approximate
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.families.whole_rows import WholeRows
from irkit.rkernels.work import Part, Work, work


def exponentials(part: Part, count: float) -> Work:
    """So many exponentials of an element, by the C library or not."""
    assert part.root.op is not None
    approximate = may_be_approximate(part.root.op)
    return work(approximate=count * part.lanes) if approximate else work(exp=count)


class Softmax(WholeRows):
    """`RANGE` of whole rows, `LOAD(OPERANDS, r, j)`, `EXP(x)` and `STORE(OPERANDS, r, j, value)`."""

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
        binder.load("LOAD", "r, j", binder.root.op.x, binder.rj_index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)
