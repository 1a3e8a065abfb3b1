"""`te.attention_query_gradient` and `te.attention_key_gradient`: a part of the rows of one side needs all of the
other side."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Operation

from irkit.dialects.attention_gradient import (
    AttentionGradientOp,
    AttentionKeyGradientOp,
    AttentionQueryGradientOp,
)
from irkit.dialects.attention_gradient_base import key_gradient, query_gradient
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import tensor_type
from irkit.weights import Array


def _boxes(
    op: AttentionGradientOp, box: Box, by_row: Collection[int], extents: Extents
) -> list[Box]:
    """Of each operand the leading elements that the result has; of those with a number in `by_row` its rows too."""
    found: list[Box] = []
    for number, operand in enumerate(op.operands):
        whole, shape = extents.whole(operand), tensor_type(operand).get_shape()
        kept = 1 if number in by_row else 2
        skip = len(box) - len(whole)
        own = [
            interval if size == 1 else box[skip + d]
            for d, (interval, size) in enumerate(zip(whole, shape, strict=True))
        ]
        found.append((*own[: max(len(own) - kept, 0)], *whole[max(len(own) - kept, 0) :]))
    return found


class QueryGradient(TensorOpModel[AttentionQueryGradientOp]):
    """A row needs its query, its cotangent, and every key and value of its leading dimensions."""

    family = "attention_gradient"

    def kind(self, op: AttentionQueryGradientOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: AttentionQueryGradientOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [query_gradient(op, *operands)]

    def operand_boxes(
        self, op: AttentionQueryGradientOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return _boxes(op, box, (0, 3, 4), extents)

    def why_no_prologue(
        self, op: AttentionQueryGradientOp, producer: Operation, cheap: bool
    ) -> str | None:
        """Each element is read once for each part of the rows."""
        return None


class KeyGradient(TensorOpModel[AttentionKeyGradientOp]):
    """A row needs its key and its value, and every query of its leading dimensions with what belongs to it."""

    family = "attention_gradient"

    def kind(self, op: AttentionKeyGradientOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: AttentionKeyGradientOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [key_gradient(op, *operands)]

    def operand_boxes(
        self, op: AttentionKeyGradientOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return _boxes(op, box, (1, 2), extents)

    def why_no_prologue(
        self, op: AttentionKeyGradientOp, producer: Operation, cheap: bool
    ) -> str | None:
        """Each element is read once for each part of the rows."""
        return None
