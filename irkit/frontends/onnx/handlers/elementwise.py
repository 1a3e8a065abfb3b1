"""Elementwise operators, and those that are the identity at inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import element_type, numpy_dtype
from irkit.frontends.onnx.node import Handler, Node, Value


def _unary(op: type[GraphOp]) -> Handler:
    return lambda node: [node.emit(op, node.operand(0))]


def _binary(op: type[GraphOp], **props: str) -> Handler:
    return lambda node: [node.emit(op, node.operand(0), node.operand(1), **props)]


def _variadic(op: type[GraphOp]) -> Handler:
    def handler(node: Node) -> Sequence[Value]:
        first, *rest = node.operands()
        for operand in rest:
            first = node.emit(op, first, operand)
        return [first]

    return handler


def _cast(node: Node) -> Sequence[Value]:
    node.ignore("saturate", "round_mode")  # they concern 8-bit floats, which have no element type
    code = node.attribute("to", 0)
    try:
        element = element_type(helper.tensor_dtype_to_np_dtype(code))
    except KeyError:
        node.refuse(f"to = {code}", "irkit has no such element type")
    return [node.emit(graph.CastOp, node.operand(0), to=element)]


def _bound(node: Node, name: str, index: int, default: float) -> float:
    """A limit of Clip: an attribute up to operator set 10, an input since."""
    if node.opset < 11:
        return float(node.attribute(name, default))
    return default if node.given(index) is None else float(node.array(index))


def _clip(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    limits = np.finfo(np.float32)
    if (dtype := numpy_dtype(node.type_of(0).element_type)).kind == "f":
        limits = np.finfo(dtype)
    low = _bound(node, "min", 1, float(limits.min))
    high = _bound(node, "max", 2, float(limits.max))
    return [node.emit(graph.ClipOp, x, min=low, max=high)]


def _dropout(node: Node) -> Sequence[Value]:
    node.ignore("ratio", "seed")
    if node.given(2) is not None and node.array(2).item():
        node.refuse("training_mode = True", "only inference is supported")
    return [node.operand(0)]


def _identity(node: Node) -> Sequence[Value]:
    return [node.operand(0)]


HANDLERS: dict[str, Handler] = {
    "Abs": _unary(graph.AbsOp),
    "Add": _binary(graph.AddOp),
    "And": _binary(graph.AndOp),
    "Cast": _cast,
    "Clip": _clip,
    "Div": _binary(graph.DivOp),
    "Dropout": _dropout,
    "Equal": _binary(graph.CompareOp, predicate="eq"),
    "Erf": _unary(graph.ErfOp),
    "Exp": _unary(graph.ExpOp),
    "Floor": _unary(graph.FloorOp),
    "Greater": _binary(graph.CompareOp, predicate="gt"),
    "GreaterOrEqual": _binary(graph.CompareOp, predicate="ge"),
    "Identity": _identity,
    "IsNaN": _unary(graph.IsNanOp),
    "Less": _binary(graph.CompareOp, predicate="lt"),
    "LessOrEqual": _binary(graph.CompareOp, predicate="le"),
    "Log": _unary(graph.LogOp),
    "Max": _variadic(graph.MaxOp),
    "Min": _variadic(graph.MinOp),
    "Mul": _binary(graph.MulOp),
    "Neg": _unary(graph.NegOp),
    "Or": _binary(graph.OrOp),
    "Pow": _binary(graph.PowOp),
    "Relu": _unary(graph.ReluOp),
    "Sigmoid": _unary(graph.SigmoidOp),
    "Sqrt": _unary(graph.SqrtOp),
    "Sub": _binary(graph.SubOp),
    "Tanh": _unary(graph.TanhOp),
    "Where": lambda node: [node.emit(graph.WhereOp, *node.operands())],
}
