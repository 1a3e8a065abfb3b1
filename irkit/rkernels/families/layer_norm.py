"""`layer_norm`: rows over the last dimension, by their own statistics."""

from __future__ import annotations

from irkit.dialects import te
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import literal
from irkit.rkernels.families.whole_rows import WholeRows


class LayerNorm(WholeRows):
    """`RANGE` of whole rows, `LOAD(OPERANDS, r, j)`, `STORE(OPERANDS, r, j, value)`, `CENTRED`, `EPSILON`."""

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
        binder.load("LOAD", "r, j", op.x, binder.rj_index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)
