"""`tensor.pad`: an edge of one value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import i8, i16
from xdsl.ir import Operation, SSAValue

from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.tensor_ops.dynamic import completed
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
from irkit.dialects.tensor_ops.scalar_body import yielded
from irkit.dialects.types import DYNAMIC, ints, tensor_type, ui8
from irkit.errors import UnsupportedError
from irkit.weights import Array


class Pad(TensorOpModel[tensor.PadOp]):
    """The value is a function of constants."""

    cheap = True

    def kind(self, op: tensor.PadOp) -> Kind:
        return Kind.LIGHT

    def why_no_prologue(self, op: tensor.PadOp, producer: Operation, cheap: bool) -> str | None:
        """None, but that factors of an integer product lie in memory: its windows read them many times."""
        short = tensor_type(op.result).element_type in (i8, i16, ui8)
        contracted = any(is_contraction(use.operation) for use in op.result.uses)
        return "a contraction reads each element many times" if short and contracted else None

    def evaluate(
        self, op: tensor.PadOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        source, rest = operands[0], operands[1:]
        low, high = ints(op.static_low), ints(op.static_high)
        split = low.count(DYNAMIC)
        before, after = completed(low, rest[:split]), completed(high, rest[split:])
        if any(a.uses for a in op.region.block.args):
            raise UnsupportedError(f"'{op.name}' with padding that depends on the position")
        (value,) = yielded(op, op.region.block, [], (), interpreter)
        # A negative amount cuts off.
        widths = [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)]
        padded = np.pad(source, widths, constant_values=value)
        ends = zip(before, after, padded.shape, strict=True)
        return [padded[tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in ends)]]

    def operand_boxes(
        self, op: tensor.PadOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        low, full = ints(op.static_low), extents.whole(op.source)
        read = [
            clipped((a - o, b - o), size)
            for (a, b), o, (_, size) in zip(box, low, full, strict=True)
        ]
        return [tuple(read), *(None for _ in op.operands[1:])]

    def element(
        self, op: tensor.PadOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        if op.low or op.high:
            raise UnsupportedError("emission of a tensor.pad by amounts that are computed")
        low, high = ints(op.static_low), ints(op.static_high)
        padded = [d for d, amounts in enumerate(zip(low, high, strict=True)) if any(amounts)]
        places = printer.beside(index, padded)
        inner, guards = _inside(op, printer, index)
        terminator = op.region.block.last_op
        assert terminator is not None
        padding = printer.scalar(terminator.operands[0])
        if not guards:
            return printer.element(op.source, inner)
        element = tensor_type(result).element_type
        variables = [printer.variable(padding, element) for _ in places]
        printer.line(f"if {' and '.join(guards)}:")
        branch = printer.branch(together=len(places) > 1)
        for variable, place in zip(variables, places, strict=True):
            # Along what is padded they are where the first is.
            where = tuple(i if d in padded else place[d] for d, i in enumerate(inner))
            branch.line(f"{variable} = {branch.element(op.source, where)}")
        for variable, place in zip(variables, places, strict=True):
            printer.remember(result, place, variable)
        return variables[places.index(index)]


def _inside(op: tensor.PadOp, printer: ElementText, index: Index) -> tuple[Index, list[str]]:
    """The index in the source, and what must hold for it to be one."""
    low, high = ints(op.static_low), ints(op.static_high)
    shape = tensor_type(op.source).get_shape()
    inner, guards = list(index), list[str]()
    for d, (before, after, size) in enumerate(zip(low, high, shape, strict=True)):
        if before:
            inner[d] = printer.name(f"{index[d]} - {before}")
        if (before or after) and size == DYNAMIC:
            raise UnsupportedError("emission of a tensor.pad of the batch")
        if before or after:
            guards.append(f"0 <= {inner[d]} < {size}" if before else f"{inner[d]} < {size}")
    return tuple(inner), guards
