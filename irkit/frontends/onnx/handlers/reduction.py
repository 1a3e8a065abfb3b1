"""Reductions along axes, positions of extremes, running sums and the largest k."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, element_type, is_float, numpy_dtype, tensor_type
from irkit.frontends.onnx.node import Handler, Node, Value

_AXES_ARE_INPUT_SINCE = {"ReduceSum": 13}
"""Operator set in which `axes` became an input; 18 for the other reductions."""

Reduction = Callable[[Node, SSAValue, Sequence[int], bool], SSAValue]
"""From a value, axes and whether these stay as 1 to the reduced value."""


def cast(node: Node, x: SSAValue, to: Attribute) -> SSAValue:
    """`x` as elements of type `to`."""
    return x if tensor_type(x).element_type == to else node.emit(graph.CastOp, x, to=to)


def widened(node: Node, x: SSAValue) -> tuple[SSAValue, Callable[[SSAValue], SSAValue]]:
    """`x` as a signed type that holds its values and has arithmetic, and the way back."""
    element = tensor_type(x).element_type
    dtype = numpy_dtype(element)
    if is_float(element) or dtype.name in ("int32", "int64"):
        return x, lambda y: y
    if dtype == np.uint64:
        node.refuse("uint64", "no signed type holds all of its values")
    wide = element_type(np.int64 if dtype == np.uint32 else np.int32)
    return cast(node, x, wide), lambda y: cast(node, y, element)


def reduce(node: Node, x: SSAValue, kind: str, axes: Sequence[int], keepdims: bool) -> SSAValue:
    """`graph.reduce`, on narrow integers by way of a wider type."""
    x, back = widened(node, x)
    return back(node.emit(graph.ReduceOp, x, kind=kind, axes=list(axes), keepdims=keepdims))


def _plain(kind: str) -> Reduction:
    return lambda node, x, axes, keepdims: reduce(node, x, kind, axes, keepdims)


def _l1(node: Node, x: SSAValue, axes: Sequence[int], keepdims: bool) -> SSAValue:
    return reduce(node, node.emit(graph.AbsOp, x), "sum", axes, keepdims)


def _sum_square(node: Node, x: SSAValue, axes: Sequence[int], keepdims: bool) -> SSAValue:
    return reduce(node, node.emit(graph.MulOp, x, x), "sum", axes, keepdims)


def _in_floats(node: Node, x: SSAValue, function: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """`function` of floats; integers go through float64 and are cut off again."""
    element = tensor_type(x).element_type
    if is_float(element):
        return function(x)
    return cast(node, function(cast(node, x, element_type(np.float64))), element)


def _l2(node: Node, x: SSAValue, axes: Sequence[int], keepdims: bool) -> SSAValue:
    return _in_floats(
        node, x, lambda v: node.emit(graph.SqrtOp, _sum_square(node, v, axes, keepdims))
    )


def _log_sum(node: Node, x: SSAValue, axes: Sequence[int], keepdims: bool) -> SSAValue:
    return _in_floats(
        node, x, lambda v: node.emit(graph.LogOp, reduce(node, v, "sum", axes, keepdims))
    )


def log_sum_exp(node: Node, x: SSAValue, axes: Sequence[int], keepdims: bool) -> SSAValue:
    """log(sum(exp(x))), whose powers never overflow: they are relative to the largest finite x."""

    def stable(v: SSAValue) -> SSAValue:
        dtype = numpy_dtype(tensor_type(v).element_type)
        # An infinite largest element would make inf - inf.
        limit = float(np.finfo(dtype).max)
        most = reduce(node, v, "max", axes, True)
        most = node.emit(graph.ClipOp, most, min=-limit, max=limit)
        power = node.emit(graph.ExpOp, node.emit(graph.SubOp, v, most))
        total = node.emit(graph.LogOp, reduce(node, power, "sum", axes, True))
        y = node.emit(graph.AddOp, most, total)
        if keepdims:
            return y
        shape = tensor_type(y).get_shape()
        rest = [s for d, s in enumerate(shape) if d not in axes]
        return node.emit(graph.ReshapeOp, y, shape=rest)

    return _in_floats(node, x, stable)


def _axes(node: Node) -> list[int]:
    rank = node.type_of(0).get_num_dims()
    axes: list[int]
    if node.opset < _AXES_ARE_INPUT_SINCE.get(node.proto.op_type, 18):
        axes = list(node.attribute("axes", []))
    else:
        axes = [] if node.given(1) is None else node.array(1).tolist()
    for axis in axes:
        if not -rank <= axis < rank:
            node.refuse(f"axes = {axes}", f"the input has {rank} dimensions")
    if not axes and node.attribute("noop_with_empty_axes", 0):
        return []
    return sorted({node.axis(a, rank) for a in axes}) or list(range(rank))


def _reduction(make: Reduction) -> Handler:
    def handler(node: Node) -> Sequence[Value]:
        keepdims = bool(node.attribute("keepdims", 1))
        node.ignore("noop_with_empty_axes")
        return [make(node, node.operand(0), _axes(node), keepdims)]

    return handler


def _axis(node: Node, value: int) -> int:
    """An axis counted from the front, within the rank of input 0."""
    rank = node.type_of(0).get_num_dims()
    if not -rank <= value < rank:
        node.refuse(f"axis = {value}", f"the input has {rank} dimensions")
    return node.axis(value, rank)


def _static(node: Node, axis: int) -> int:
    """The extent of an axis of input 0, which must not be the batch."""
    size = node.type_of(0).get_shape()[axis]
    if size == DYNAMIC:
        node.refuse(f"axis = {axis}", "it mixes the rows of a dynamic batch")
    return size


def _constant(node: Node, x: SSAValue, value: float) -> SSAValue:
    """`value` in the element type of `x`."""
    return node.tensor(np.array(value, numpy_dtype(tensor_type(x).element_type)))


# The new order is a constant of the program.
LONGEST_REVERSED = 1 << 24


def reversed_along(node: Node, x: SSAValue, axis: int) -> SSAValue:
    """`x` with the order of one axis turned round."""
    size = tensor_type(x).get_shape()[axis]
    if size > LONGEST_REVERSED:
        node.refuse(f"axis = {axis}", f"{size} elements are too many to turn round")
    return node.emit(graph.GatherOp, x, node.tensor(np.arange(size)[::-1].copy()), axis=axis)


def _arg(largest: bool) -> Handler:
    def handler(node: Node) -> Sequence[Value]:
        axis = _axis(node, int(node.attribute("axis", 0)))
        size = _static(node, axis)
        keepdims, last = bool(node.attribute("keepdims", 1)), node.attribute("select_last_index", 0)
        x, _ = widened(node, node.operand(0))
        if not largest and is_float(tensor_type(x).element_type):
            x = node.emit(graph.NegOp, x)
        elif not largest:
            # Turns the order round without overflow.
            x = node.emit(graph.SubOp, _constant(node, x, -1), x)
        if last:
            x = reversed_along(node, x, axis)
        y = node.emit(graph.ArgmaxOp, x, axis=axis, keepdims=keepdims)
        return [node.emit(graph.SubOp, _constant(node, y, size - 1), y) if last else y]

    return handler


def _cumulative(node: Node) -> Sequence[Value]:
    axis = _axis(node, int(node.array(1).item()))
    _static(node, axis)
    x, back = widened(node, node.operand(0))
    y = node.emit(
        graph.CumSumOp,
        x,
        axis=axis,
        exclusive=bool(node.attribute("exclusive", 0)),
        reverse=bool(node.attribute("reverse", 0)),
    )
    return [back(y)]


def _top_k(node: Node) -> Sequence[Value]:
    node.ignore("sorted")  # in order is one of the orders that unsorted results may have
    k = int(node.array(1).item() if node.opset >= 10 else node.attribute("k", 0))
    axis = _axis(node, int(node.attribute("axis", -1)))
    size = _static(node, axis)
    if not 0 < k <= size:
        node.refuse(f"k = {k}", f"the axis has {size} elements")
    largest = bool(node.attribute("largest", 1))
    x = node.operand(0)
    return node.emit_all(graph.TopKOp, x, k=k, axis=axis, largest=largest)


HANDLERS: dict[str, Handler] = {
    "ArgMax": _arg(largest=True),
    "ArgMin": _arg(largest=False),
    "CumSum": _cumulative,
    "ReduceL1": _reduction(_l1),
    "ReduceL2": _reduction(_l2),
    "ReduceLogSum": _reduction(_log_sum),
    "ReduceLogSumExp": _reduction(log_sum_exp),
    "ReduceMax": _reduction(_plain("max")),
    "ReduceMean": _reduction(_plain("mean")),
    "ReduceMin": _reduction(_plain("min")),
    "ReduceProd": _reduction(_plain("prod")),
    "ReduceSum": _reduction(_plain("sum")),
    "ReduceSumSquare": _reduction(_sum_square),
    "TopK": _top_k,
}
