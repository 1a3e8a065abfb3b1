"""`te.layer_norm`: along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.layer_norm_base import normalised
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.weights import Array


class LayerNorm(TensorOpModel[te.LayerNormOp]):
    """A row of the result needs the whole row of the operand."""

    family = "layer_norm"

    def kind(self, op: te.LayerNormOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.LayerNormOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [normalised(op, *operands)]

    def operand_boxes(
        self, op: te.LayerNormOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return [(*box[:-1], extents.whole(op.x)[-1])]

    def why_no_prologue(self, op: te.LayerNormOp, producer: Operation, cheap: bool) -> str | None:
        """Each element is read once, and kept until its row's statistics are known."""
        return None
