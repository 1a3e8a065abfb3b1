"""`te.attention`: keys and values are read whole for each part of the rows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.attention_base import attended
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import tensor_type
from irkit.weights import Array


class Attention(TensorOpModel[te.AttentionOp]):
    """A row of the result needs its query, and every key and value of its leading dimensions."""

    family = "attention"

    def kind(self, op: te.AttentionOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.AttentionOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [attended(op, *operands).transpose(op.order)]

    def operand_boxes(
        self, op: te.AttentionOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        place = dict(zip(op.order, box, strict=True))
        loops = [place[d] for d in range(len(box))]
        if op.count is not None:
            # A part reads its own keys: which, nobody asks.
            del loops[-3]
        found: list[Box] = []
        for number, operand in enumerate(op.operands):
            whole = extents.whole(operand)
            skip = len(loops) - len(whole)
            # What lies along the rows, and along the columns, of the result.
            kept = {0: 1, 1: 2, 2: 2, 3: 1}[number]
            own = [
                interval if size == 1 else loops[skip + d]
                for d, (interval, size) in enumerate(
                    zip(whole, tensor_type(operand).get_shape(), strict=True)
                )
            ]
            found.append((*own[: len(own) - kept], *whole[len(own) - kept :]))
        return found

    def why_no_prologue(self, op: te.AttentionOp, producer: Operation, cheap: bool) -> str | None:
        """Each element is read once for each part of the rows."""
        return None
