"""Elementwise operators that are made of several graph ops, and those of mixed or integer types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import element_type, is_float, is_unsigned, numpy_dtype, tensor_type
from irkit.frontends.onnx.narrow import narrow_code
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.narrow_integers import NarrowInteger


def element_of(value: SSAValue) -> Attribute:
    """Element type of a tensor."""
    return tensor_type(value).element_type


def scalar(node: Node, value: float, like: SSAValue) -> SSAValue:
    """A constant without dimensions, of `like`'s element type."""
    return node.tensor(np.array(value, numpy_dtype(element_of(like))))


def cast(node: Node, x: SSAValue, to: Attribute) -> SSAValue:
    """`x` as elements of another type."""
    return x if element_of(x) == to else node.emit(graph.CastOp, x, to=to)


def zeros_like(node: Node, x: SSAValue) -> SSAValue:
    """`x - x` would be NaN of NaN: a constant zero."""
    return scalar(node, 0, x)


def _unary(op: type[GraphOp]) -> Handler:
    return lambda node: [node.emit(op, node.operand(0))]


def _binary(op: type[GraphOp]) -> Handler:
    return lambda node: [node.emit(op, node.operand(0), node.operand(1))]


def _bit_shift(node: Node) -> Sequence[Value]:
    direction = node.attribute("direction", "")
    op = {"LEFT": graph.ShiftLeftOp, "RIGHT": graph.ShiftRightOp}.get(direction)
    if op is None:
        node.refuse(f"direction = {direction!r}", "only LEFT and RIGHT are defined")
    return [node.emit(op, node.operand(0), node.operand(1))]


def _cast_to(node: Node, x: SSAValue, to: Attribute) -> SSAValue:
    have = element_of(x)
    if have == to and x in node.narrow.marks:
        # The same bytes, but a value of its own: it is not marked.
        return node.emit(graph.ReshapeOp, x, shape=list(tensor_type(x).get_shape()))
    if is_float(have) and is_unsigned(to):
        # Through a wider signed integer, as NumPy does: what is below zero wraps.
        x = cast(node, x, i64)
    return cast(node, x, to)


def _narrowed(node: Node, x: SSAValue, to: NarrowInteger) -> SSAValue:
    """The low bits of `x`, a float being truncated first, as an integer of so many."""
    if node.narrow.of(x) == to:
        return x
    wide = cast(node, x, i64)
    low = node.emit(graph.AndOp, wide, scalar(node, to.high - to.low, wide))
    if to.signed:
        # The upper half of them is below zero.
        half = scalar(node, -to.low, wide)
        low = node.emit(graph.SubOp, node.emit(graph.XorOp, low, half), half)
    return node.narrow.mark(cast(node, low, element_type(to.wide)), to)


def _cast(node: Node) -> Sequence[Value]:
    node.ignore("saturate", "round_mode")  # they concern 8-bit floats, which have no element type
    code = int(node.attribute("to", 0))
    if narrow := narrow_code(code):
        return [_narrowed(node, node.operand(0), narrow)]
    try:
        element = element_type(helper.tensor_dtype_to_np_dtype(code))
    except KeyError:
        node.refuse(f"to = {code}", "irkit has no such element type")
    return [_cast_to(node, node.operand(0), element)]


def _cast_like(node: Node) -> Sequence[Value]:
    node.ignore("saturate", "round_mode")
    like = node.given(1)
    if like is None:
        node.refuse("target_type", "it is missing")
    if narrow := node.narrow.of(like):
        return [_narrowed(node, node.operand(0), narrow)]
    if isinstance(like, SSAValue):
        return [_cast_to(node, node.operand(0), element_of(like))]
    try:
        return [_cast_to(node, node.operand(0), element_type(like.dtype))]
    except KeyError:
        node.refuse(f"target_type of {like.dtype}", "irkit has no such element type")


def _largest(node: Node, y: SSAValue, sign: int) -> SSAValue | None:
    """What `y` is cut off at where nothing is given: the largest finite number of its type, or the least.

    None where it is no limit: of integers, and up to operator set 10, whose attributes are float32, of
    float16.
    """
    element, dtype = element_of(y), numpy_dtype(element_of(y))
    if not is_float(element) or (node.opset < 11 and dtype.itemsize < 4):
        return None
    if node.opset < 11:
        dtype = np.dtype(np.float32)
    # Of floats, infinity's bits are the next number's.
    below_infinity = np.array(np.inf, dtype).view(f"u{dtype.itemsize}") - 1
    return scalar(node, sign * float(below_infinity.view(dtype)), y)


def _limits(node: Node, y: SSAValue) -> list[SSAValue | None]:
    """The lower and the upper limit of Clip: attributes up to operator set 10, inputs since.

    One that is not given is the largest finite number: infinity is cut off there. Integers need none.
    """
    found: list[SSAValue | None] = []
    for index, name, sign in ((1, "min", -1), (2, "max", 1)):
        number = node.attribute(name, None) if node.opset < 11 else None
        if number is not None:
            found.append(scalar(node, float(number), y))
        elif node.opset < 11 or node.given(index) is None:
            found.append(_largest(node, y, sign))
        elif math.prod(node.type_of(index).get_shape()) == 1:
            found.append(node.emit(graph.ReshapeOp, node.operand(index), shape=[]))
        else:
            node.refuse(name, f"it must be one number, got {node.type_of(index)}")
    return found


def _clip(node: Node) -> Sequence[Value]:
    y = node.operand(0)
    for op, limit in zip((graph.MaxOp, graph.MinOp), _limits(node, y), strict=True):
        if limit is not None:
            y = node.emit(op, y, limit)
    return [y]


def _is_inf(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    found: list[SSAValue] = []
    for sign, name in ((1, "detect_positive"), (-1, "detect_negative")):
        if node.attribute(name, 1):
            infinity = scalar(node, sign * np.inf, x)
            found.append(node.emit(graph.CompareOp, x, infinity, predicate="eq"))
    if not found:
        never = scalar(node, np.nan, x)
        return [node.emit(graph.CompareOp, x, never, predicate="eq")]
    return [found[0] if len(found) == 1 else node.emit(graph.OrOp, *found)]


def _mean(node: Node) -> Sequence[Value]:
    first, *rest = node.operands()
    for operand in rest:
        first = node.emit(graph.AddOp, first, operand)
    return [node.emit(graph.DivOp, first, scalar(node, 1 + len(rest), first))]


def _mod(node: Node) -> Sequence[Value]:
    op = graph.RemOp if node.attribute("fmod", 0) else graph.ModOp
    if is_float(element_of(node.operand(0))):
        node.refuse("operands", "the remainder of floating-point numbers is not supported")
    return [node.emit(op, node.operand(0), node.operand(1))]


def _is_two(value: Value | None) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0 and bool(value == 2)


def _pow(node: Node) -> Sequence[Value]:
    """The result has the base's type; mixed types meet in float64, or in int64 if both are integers.

    The integer 0 to a negative power, of which ONNX says nothing, is 0.
    """
    x, y = node.operand(0), node.operand(1)
    base, exponent = element_of(x), element_of(y)
    if is_float(base) and _is_two(node.given(1)):
        # The same bits, without the function.
        return [node.emit(graph.MulOp, x, x)]
    if base == exponent and is_float(base):
        return [node.emit(graph.PowOp, x, y)]
    common = f64 if is_float(base) or is_float(exponent) else i64
    power = node.emit(graph.PowOp, cast(node, x, common), cast(node, y, common))
    return [cast(node, power, base)]


def _reciprocal(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    return [node.emit(graph.DivOp, scalar(node, 1, x), x)]


def _relu(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    if is_float(element_of(x)):
        return [node.emit(graph.ReluOp, x)]
    return [node.emit(graph.MaxOp, x, scalar(node, 0, x))]


def _sign(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    zero = zeros_like(node, x)
    above = cast(node, node.emit(graph.CompareOp, x, zero, predicate="gt"), element_of(x))
    if is_unsigned(element_of(x)):
        return [above]
    below = cast(node, node.emit(graph.CompareOp, x, zero, predicate="lt"), element_of(x))
    sign = node.emit(graph.SubOp, above, below)
    if not is_float(element_of(x)):
        return [sign]
    return [node.emit(graph.WhereOp, node.emit(graph.IsNanOp, x), x, sign)]


def _softplus(node: Node) -> Sequence[Value]:
    """max(x, 0) + log1p(exp(-|x|)): log(exp(x) + 1) that does not overflow; by cases, of which each is smooth
    at 0."""
    x = node.operand(0)
    zero = zeros_like(node, x)
    positive = node.emit(graph.CompareOp, x, zero, predicate="gt")
    apart = node.emit(graph.WhereOp, positive, node.emit(graph.NegOp, x), x)
    rest = node.emit(graph.Log1pOp, node.emit(graph.ExpOp, apart))
    return [node.emit(graph.AddOp, node.emit(graph.WhereOp, positive, x, zero), rest)]


def _logical(op: type[GraphOp]) -> Handler:
    def handler(node: Node) -> Sequence[Value]:
        if any(element_of(v) != i1 for v in node.operands()):
            node.refuse("operands", "they must be booleans")
        return [node.emit(op, *node.operands())]

    return handler


_FUNCTIONS: dict[str, type[GraphOp]] = {
    "Acos": graph.AcosOp,
    "Acosh": graph.AcoshOp,
    "Asin": graph.AsinOp,
    "Asinh": graph.AsinhOp,
    "Atan": graph.AtanOp,
    "Atanh": graph.AtanhOp,
    "BitwiseNot": graph.NotOp,
    "Ceil": graph.CeilOp,
    "Cos": graph.CosOp,
    "Cosh": graph.CoshOp,
    "Not": graph.NotOp,
    "Round": graph.RoundOp,
    "Sin": graph.SinOp,
    "Sinh": graph.SinhOp,
    "Tan": graph.TanOp,
}
_MADE: dict[str, Callable[[Node], Sequence[Value]]] = {
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "IsInf": _is_inf,
    "Mean": _mean,
    "Mod": _mod,
    "Pow": _pow,
    "Reciprocal": _reciprocal,
    "Relu": _relu,
    "Sign": _sign,
    "Softplus": _softplus,
    "Xor": _logical(graph.XorOp),
}
HANDLERS: dict[str, Handler] = {
    **{name: _unary(op) for name, op in _FUNCTIONS.items()},
    "BitwiseAnd": _binary(graph.AndOp),
    "BitwiseOr": _binary(graph.OrOp),
    "BitwiseXor": _binary(graph.XorOp),
    **_MADE,
}
