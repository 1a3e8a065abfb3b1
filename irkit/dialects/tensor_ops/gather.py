"""`te.gather` and `te.gather_elements`: elements picked by indices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.gather_base import gathered, gathered_elements
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.types import tensor_type
from irkit.weights import Array


def _clamped(printer: ElementText, picked: str, data: SSAValue, axis: int) -> str:
    """An index from data, kept inside the tensor: one that is not has no meaning, and must not be read."""
    last = tensor_type(data).get_shape()[axis] - 1
    return printer.name(f"min(max({picked}, 0), {last})")


class Gather(TensorOpModel[te.GatherOp]):
    """All along the axis may be read."""

    def kind(self, op: te.GatherOp) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: te.GatherOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [gathered(op, *operands)]

    def operand_boxes(
        self, op: te.GatherOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        axis, rank = op.axis.value.data, tensor_type(op.indices).get_num_dims()
        along = extents.whole(op.data)[axis]
        return [(*box[:axis], along, *box[axis + rank :]), box[axis : axis + rank]]

    def element(self, op: te.GatherOp, printer: ElementText, result: SSAValue, index: Index) -> str:
        axis, rank = op.axis.value.data, tensor_type(op.indices).get_num_dims()
        where = printer.element(op.indices, index[axis : axis + rank])
        picked = _clamped(printer, where, op.data, axis)
        return printer.element(op.data, (*index[:axis], picked, *index[axis + rank :]))


class GatherElements(TensorOpModel[te.GatherElementsOp]):
    """All along the axis may be read."""

    def kind(self, op: te.GatherElementsOp) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: te.GatherElementsOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [gathered_elements(op, *operands)]

    def operand_boxes(
        self, op: te.GatherElementsOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        axis = op.axis.value.data
        return [(*box[:axis], extents.whole(op.data)[axis], *box[axis + 1 :]), box]

    def element(
        self, op: te.GatherElementsOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        axis = op.axis.value.data
        picked = _clamped(printer, printer.element(op.indices, index), op.data, axis)
        return printer.element(op.data, (*index[:axis], picked, *index[axis + 1 :]))
