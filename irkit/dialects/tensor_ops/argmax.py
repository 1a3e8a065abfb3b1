"""`te.argmax`: a search along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import tensor_type
from irkit.weights import Array


class Argmax(TensorOpModel[te.ArgmaxOp]):
    """Reads each element once, in order, whatever computes it."""

    family = "argmax"

    def kind(self, op: te.ArgmaxOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.ArgmaxOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [operands[0].argmax(axis=-1)]

    def operand_boxes(
        self, op: te.ArgmaxOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        return [(*box, extents.whole(op.x)[-1])]

    def why_no_prologue(self, op: te.ArgmaxOp, producer: Operation, cheap: bool) -> str | None:
        return None

    def root(self, heavy: Sequence[Operation]) -> Root:
        root = super().root(heavy)
        (op,) = heavy
        extent = tensor_type(op.operands[0]).get_shape()[-1]
        return Root(root.family, op, root.parallel, (extent,))
