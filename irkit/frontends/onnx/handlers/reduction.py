"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects import graph
from irkit.frontends.onnx.node import Handler, Node, Value

_AXES_ARE_INPUT_SINCE = {"sum": 13}
"""Operator set in which `axes` became an input; 18 for the other kinds."""


def _axes(node: Node, kind: str) -> list[int]:
    rank = node.type_of(0).get_num_dims()
    axes: list[int]
    if node.opset < _AXES_ARE_INPUT_SINCE.get(kind, 18):
        axes = node.attribute("axes", [])
    else:
        axes = [] if node.given(1) is None else node.array(1).tolist()
    if not axes and node.attribute("noop_with_empty_axes", 0):
        return []
    return sorted(node.axis(a, rank) for a in axes) or list(range(rank))


def _reduce(kind: str) -> Handler:
    def handler(node: Node) -> Sequence[Value]:
        keepdims = bool(node.attribute("keepdims", 1))
        node.ignore("noop_with_empty_axes")
        axes = _axes(node, kind)
        return [node.emit(graph.ReduceOp, node.operand(0), kind=kind, axes=axes, keepdims=keepdims)]

    return handler


def _argmax(node: Node) -> Sequence[Value]:
    node.require("select_last_index", 0)
    axis = node.axis(node.attribute("axis", 0), node.type_of(0).get_num_dims())
    keepdims = bool(node.attribute("keepdims", 1))
    return [node.emit(graph.ArgmaxOp, node.operand(0), axis=axis, keepdims=keepdims)]


HANDLERS: dict[str, Handler] = {
    "ArgMax": _argmax,
    "ReduceMax": _reduce("max"),
    "ReduceMean": _reduce("mean"),
    "ReduceMin": _reduce("min"),
    "ReduceProd": _reduce("prod"),
    "ReduceSum": _reduce("sum"),
}
