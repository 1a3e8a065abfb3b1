"""`te.nibble_matmul`: a product with a matrix of 4-bit integers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.nibbles import WIDTH, nibble_matmul
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.weights import Array


class NibbleMatmul(TensorOpModel[te.NibbleMatmulOp]):
    """Columns of the result need the panels that they are in, and rows their own."""

    family = "nibble_product"

    def kind(self, op: te.NibbleMatmulOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.NibbleMatmulOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [nibble_matmul(op, *operands)]

    def operand_boxes(
        self, op: te.NibbleMatmulOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        rows, (first, last) = box
        panels = first // WIDTH, -(-last // WIDTH)
        whole = [extents.whole(v) for v in op.operands[1:]]
        return [(rows, (0, op.depth)), *((panels, *w[1:]) for w in whole)]

    def why_no_prologue(
        self, op: te.NibbleMatmulOp, producer: Operation, cheap: bool
    ) -> str | None:
        return f"'{op.name}' reads its operands where they are in memory"
