"""Values that are integers times a scale, as DequantizeLinear leaves them at the graph level."""

from __future__ import annotations

from dataclasses import dataclass

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


def known(value: SSAValue, weights: WeightStore) -> Array | None:
    """What a value of a few elements is if no input has a part in it."""
    if DYNAMIC in tensor_type(value).get_shape():
        return None
    array = constant_array(value, weights)
    op = value.owner
    if array is not None or not isinstance(op, GraphOp):
        return array
    operands = [known(v, weights) for v in op.operands]
    found = [a for a in operands if a is not None and a.size <= _FEW]
    if len(found) < len(operands):
        return None
    results = dict(zip(op.results, evaluate(op, found), strict=True))
    return next(a for v, a in results.items() if v is value)


def quantised(value: SSAValue, weights: WeightStore) -> Quantised | None:
    """`value` as integers times a known scale, of float32; None if it is no such product."""
    op = value.owner
    if not isinstance(op, graph.MulOp):
        return None
    for x, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        inner = x.owner
        if not isinstance(inner, graph.CastOp) or inner.to != f32 or x.type != value.type:
            continue
        scale = known(factor, weights)
        if tensor_type(inner.x).element_type == i32 and scale is not None:
            return Quantised(inner.x, scale)
    return None


def _of_bytes(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, graph.CastOp) and tensor_type(op.x).element_type in (i8, ui8)


def is_centred_byte(value: SSAValue, weights: WeightStore) -> bool:
    """Whether i32 elements are bytes, less a zero point that is one: from -255 to 255."""
    if _of_bytes(value):
        return True
    op = value.owner
    if not isinstance(op, graph.SubOp) or not _of_bytes(op.lhs) or op.lhs.type != op.y.type:
        return False
    if _of_bytes(op.rhs):
        return True
    zero, source = known(op.rhs, weights), op.lhs.owner
    assert isinstance(source, graph.CastOp)
    signed = tensor_type(source.x).element_type == i8
    low, high = (-128, 127) if signed else (0, 255)
    return zero is not None and bool((zero >= low).all() and (zero <= high).all())
