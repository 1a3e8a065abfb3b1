"""Values that are integers times a scale, as DequantizeLinear leaves them at the graph level."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.constants import constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import evaluate
from irkit.dialects.types import DYNAMIC, tensor_type, ui8
from irkit.weights import Array, WeightStore

# Scales and zero points are few; what is larger is not worth computing twice.
_FEW = 1 << 16


@dataclass(frozen=True)
class Quantised:
    """`float32(integers) * scale`; `scale` broadcasts to the integers."""

    integers: SSAValue
    scale: Array


@dataclass
class KnownValues:
    """What values of a few elements are if no input has a part in them; each is looked at once.

    Rewriting keeps what a value is, so one of these serves a pass.
    """

    weights: WeightStore
    _found: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, "Array | None"])

    def of(self, value: SSAValue) -> Array | None:
        """The array that `value` is; None if it is not known."""
        # Operands before what reads them, by a list of what is still to do: networks are deep.
        pending = [value]
        while pending:
            if (last := pending[-1]) in self._found:
                pending.pop()
                continue
            asked = self._next(last)
            if asked is not None:
                pending.append(asked)
        return self._found[value]

    def _next(self, value: SSAValue) -> SSAValue | None:
        """An operand that must be looked at first; None where it is settled what `value` is."""
        op, is_open = value.owner, DYNAMIC in tensor_type(value).get_shape()
        array = None if is_open else constant_array(value, self.weights)
        if array is not None or is_open or not isinstance(op, GraphOp):
            self._found[value] = array
            return None
        found: list[Array] = []
        for operand in op.operands:
            if operand not in self._found:
                return operand
            if (known := self._found[operand]) is None or known.size > _FEW:
                self._found |= dict.fromkeys(op.results)
                return None
            found.append(known)
        self._found |= zip(op.results, evaluate(op, found), strict=True)
        return None


def quantised(value: SSAValue, known: KnownValues) -> Quantised | None:
    """`value` as integers times a known scale, of float32; None if it is no such product."""
    op = value.owner
    if not isinstance(op, graph.MulOp):
        return None
    for x, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        inner = x.owner
        if not isinstance(inner, graph.CastOp) or inner.to != f32 or x.type != value.type:
            continue
        scale = known.of(factor)
        if tensor_type(inner.x).element_type == i32 and scale is not None:
            return Quantised(inner.x, scale)
    return None


def _of_bytes(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, graph.CastOp) and tensor_type(op.x).element_type in (i8, ui8)


def is_centred_byte(value: SSAValue, known: KnownValues) -> bool:
    """Whether i32 elements are bytes, less a zero point that is one: from -255 to 255."""
    if _of_bytes(value):
        return True
    op = value.owner
    if not isinstance(op, graph.SubOp) or not _of_bytes(op.lhs) or op.lhs.type != op.y.type:
        return False
    if _of_bytes(op.rhs):
        return True
    zero, source = known.of(op.rhs), op.lhs.owner
    assert isinstance(source, graph.CastOp)
    signed = tensor_type(source.x).element_type == i8
    low, high = (-128, 127) if signed else (0, 255)
    return zero is not None and bool((zero >= low).all() and (zero <= high).all())
