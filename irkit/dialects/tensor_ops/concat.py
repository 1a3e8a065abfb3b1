"""`tensor.concat`: tensors end to end along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.tensor_ops.intervals import clipped
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.weights import Array


class Concat(TensorOpModel[tensor.ConcatOp]):
    """A view where each operand is one run of the result's bytes: it is then computed in its place."""

    def kind(self, op: tensor.ConcatOp) -> Kind:
        before = tensor_type(op.result).get_shape()[: op.dim.value.data]
        return Kind.VIEW if all(s == 1 for s in before) else Kind.LIGHT

    def evaluate(
        self, op: tensor.ConcatOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [np.concatenate(operands, axis=op.dim.value.data)]

    def operand_boxes(
        self, op: tensor.ConcatOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        axis, start, boxes = op.dim.value.data, 0, list[Box]()
        for operand in op.inputs:
            _, end = extents.whole(operand)[axis]
            moved = list(box)
            moved[axis] = clipped((box[axis][0] - start, box[axis][1] - start), end)
            boxes.append(tuple(moved))
            start += end
        return boxes

    def element(
        self, op: tensor.ConcatOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        t, axis, start = tensor_type(result), op.dim.value.data, 0
        if t.get_shape()[axis] == DYNAMIC:
            raise UnsupportedError("emission of a tensor.concat along the batch")
        places = printer.beside(index, (axis,))
        zero = printer.number(0, t.element_type)
        variables = [printer.variable(zero, t.element_type) for _ in places]
        for number, part in enumerate(op.inputs):
            size = tensor_type(part).get_shape()[axis]
            printer.line(f"{'el' if number else ''}if {index[axis]} < {start + size}:")
            branch = printer.branch(together=len(places) > 1)
            within = branch.name(f"{index[axis]} - {start}" if start else index[axis])
            for variable, place in zip(variables, places, strict=True):
                inner = (*place[:axis], within, *place[axis + 1 :])
                branch.line(f"{variable} = {branch.element(part, inner)}")
            start += size
        for variable, place in zip(variables, places, strict=True):
            printer.remember(result, place, variable)
        return variables[places.index(index)]
