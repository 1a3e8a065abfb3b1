"""`layer_norm`: rows over the last dimension, by their own statistics."""

from __future__ import annotations

from xdsl.ir import BlockArgument

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import literal
from irkit.rkernels.binding.fours import fours
from irkit.rkernels.families.whole_rows import WholeRows, stored_rows


def in_memory(root: Root) -> BlockArgument | None:
    """The operand that holds the rows of a layer normalisation; None of another root, or of computed rows."""
    return stored_rows(root, root.op.x) if isinstance(root.op, te.LayerNormOp) else None


class LayerNorm(WholeRows):
    """`RANGE` of whole rows, `LOAD(OPERANDS, r, j)`, `STORE(OPERANDS, r, j, value)`, `CENTRED`, `EPSILON`.

    Where the operand is in memory also the pointer `SOURCE`: `LOAD(OPERANDS, r, j)` is `SOURCE[r * J + j]`.
    On a GPU also `STORE_FOUR` (`irkit/rkernels/binding/fours.py`).
    """

    name = "layer_norm"
    op = te.LayerNormOp
    called = "layer normalisation"

    def bind(self, binder: Binder) -> None:
        """The operand is read through what is fused before it."""
        op = binder.root.op
        if not isinstance(op, te.LayerNormOp):
            raise UnsupportedError("a layer normalisation of another root")
        binder.range()
        binder.literal("CENTRED", int(op.is_centred))
        element = tensor_type(op.x).element_type
        binder.binding.names["EPSILON"] = literal(op.raised_by, element)
        source = in_memory(binder.root)
        if source is not None:
            binder.binding.names["SOURCE"] = f"p{source.index}"
        binder.load("LOAD", "r, j", op.x, binder.rj_index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)
        if binder.target == "cuda":
            fours(binder, binder.rj_index, of_sums=True)
