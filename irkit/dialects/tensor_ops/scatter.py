"""`te.scatter_add`: rows added to the places that indices name."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.scatter_base import scatter_added
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.weights import Array


class ScatterAdd(TensorOpModel[te.ScatterAddOp]):
    """A row of the result hangs on all indices, and on any row of the updates."""

    family = "scatter_add"

    def kind(self, op: te.ScatterAddOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.ScatterAddOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [scatter_added(op, *operands)]

    def operand_boxes(
        self, op: te.ScatterAddOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return [box, extents.whole(op.indices), (*extents.whole(op.updates)[:1], box[1])]

    def why_no_prologue(self, op: te.ScatterAddOp, producer: Operation, cheap: bool) -> str | None:
        if any(r in (op.x, op.updates) for r in producer.results):
            # A product computed here might be fused with the sum, which would then be rounded once.
            return f"'{op.name}' adds what is in memory"
        return None
