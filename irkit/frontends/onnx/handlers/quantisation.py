"""Linear quantisation: numbers as integers, a scale and a zero point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph
from irkit.dialects.types import element_type, is_half, is_integer, numpy_dtype, tensor_type, ui8
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of, scalar
from irkit.frontends.onnx.narrow import narrow_code
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.narrow_integers import NarrowInteger


def _along(node: Node, value: SSAValue, axis: int) -> SSAValue:
    """A scale or zero point, shaped to broadcast with input 0."""
    shape, given = node.type_of(0).get_shape(), tensor_type(value).get_shape()
    block = int(node.attribute("block_size", 0))
    if len(given) == len(shape) and block:
        indices = np.arange(shape[axis], dtype=np.int64) // block
        return node.emit(graph.GatherOp, value, node.tensor(indices), axis=axis)
    if given in ((), (1,)):
        return node.emit(graph.ReshapeOp, value, shape=[])
    if len(given) != 1 or given[0] != shape[axis]:
        node.refuse("scale", f"{value.type} does not fit axis {axis} of {node.type_of(0)}")
    return node.emit(
        graph.ReshapeOp, value, shape=[given[0] if d == axis else 1 for d in range(len(shape))]
    )


def _axis(node: Node) -> int:
    return node.axis(int(node.attribute("axis", 1)), node.type_of(0).get_num_dims())


def _named_type(node: Node, name: str) -> Attribute | None:
    """The element type that attribute `name` says, if it is given."""
    code = int(node.attribute(name, 0))
    if not code:
        return None
    try:
        return element_type(helper.tensor_dtype_to_np_dtype(code))
    except KeyError:
        node.refuse(f"{name} = {code}", "irkit has no such element type")


def _wide(element: Attribute) -> Attribute:
    """In what the arithmetic of `element` is done: 16 bits hold few of the integers, as in ONNX Runtime."""
    return f32 if is_half(element) else element


def saturated(
    node: Node,
    x: SSAValue,
    zero: SSAValue | None,
    to: Attribute,
    narrow: NarrowInteger | None = None,
) -> SSAValue:
    """Floats rounded to even, moved by the zero point, and cast to what `to` holds, or `narrow`, whose bytes
    are of that type."""
    limits = np.iinfo(numpy_dtype(to))
    low, high = (narrow.low, narrow.high) if narrow else (int(limits.min), int(limits.max))
    y = node.emit(graph.RoundOp, x)
    if zero is not None:
        y = node.emit(graph.AddOp, y, cast(node, zero, element_of(y)))
    y = node.emit(graph.MaxOp, y, scalar(node, low, y))
    y = node.emit(graph.MinOp, y, scalar(node, high, y))
    return cast(node, cast(node, y, i64), to)


def has_zero_point(node: Node, index: int) -> bool:
    """Whether input `index` is given and not known to be all zeros."""
    zero = node.given(index)
    return zero is not None and (isinstance(zero, SSAValue) or bool(zero.any()))


def _quantize(node: Node) -> Sequence[Value]:
    node.ignore("saturate")  # it concerns 8-bit floats, which have no element type
    axis, scale = _axis(node), node.operand(1)
    asked = _named_type(node, "precision")
    precision = asked or element_of(scale)
    zero = node.operand(2) if node.given(2) is not None else None
    narrow = narrow_code(int(node.attribute("output_dtype", 0))) or node.narrow.of(node.given(2))
    if narrow is not None:
        to = element_type(narrow.wide)
    else:
        to = _named_type(node, "output_dtype") or (ui8 if zero is None else element_of(zero))
    if not is_integer(to) or numpy_dtype(to).itemsize > 2:
        node.refuse("y_zero_point", f"quantisation to {to} is not supported")
    wide = _wide(precision)
    x = cast(node, cast(node, node.operand(0), precision), wide)
    scale = cast(node, cast(node, scale, precision), wide)
    ratio = node.emit(graph.DivOp, x, _along(node, scale, axis))
    if asked is not None or node.opset >= 23:  # ONNX says since in which type the quotient is
        ratio = cast(node, cast(node, ratio, precision), wide)
    point = None if zero is None else _along(node, zero, axis)
    y = saturated(node, ratio, point, to, narrow)
    return [y if narrow is None else node.narrow.mark(y, narrow)]


def _dequantize(node: Node) -> Sequence[Value]:
    axis, scale, x = _axis(node), node.operand(1), cast(node, node.operand(0), i32)
    to = _named_type(node, "output_dtype") or element_of(scale)
    if has_zero_point(node, 2):
        zero = cast(node, node.operand(2), i32)
        x = node.emit(graph.SubOp, x, _along(node, zero, axis))
    wide = _wide(to)
    scale = _along(node, cast(node, cast(node, scale, to), wide), axis)
    return [cast(node, node.emit(graph.MulOp, cast(node, x, wide), scale), to)]


def dynamically(node: Node, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`x` as uint8, its scale and its zero point, which follow from its least and its largest element.

    The scale of what is all zeros is 1, as ONNX Runtime has it; by ONNX's own text it is 0 / 0.
    """
    every = list(range(tensor_type(x).get_num_dims()))
    none = scalar(node, 0, x)
    low, high = (
        node.emit(op, node.emit(graph.ReduceOp, x, kind=kind, axes=every, keepdims=False), none)
        for op, kind in ((graph.MinOp, "min"), (graph.MaxOp, "max"))
    )
    flat = node.emit(graph.CompareOp, low, high, predicate="eq")
    width = node.emit(graph.DivOp, node.emit(graph.SubOp, high, low), scalar(node, 255, x))
    scale = node.emit(graph.WhereOp, flat, scalar(node, 1, x), width)
    zero = saturated(
        node, node.emit(graph.SubOp, none, node.emit(graph.DivOp, low, scale)), None, ui8
    )
    return saturated(node, node.emit(graph.DivOp, x, scale), zero, ui8), scale, zero


def _dynamic_quantize(node: Node) -> Sequence[Value]:
    return dynamically(node, node.operand(0))


HANDLERS: dict[str, Handler] = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "QuantizeLinear": _quantize,
}
