"""Elementwise operators, and those that are the identity at inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, numpy_dtype
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


def _dropout(node: Node) -> Sequence[Value]:
    node.ignore("ratio", "seed")
    if node.given(2) is not None and node.array(2).item():
        node.refuse("training_mode = True", "only inference is supported")
    x = node.type_of(0)
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return [node.operand(0)]
    if DYNAMIC in x.get_shape():
        node.refuse("mask", "it has the size of the dynamic batch")
    # The mask keeps everything; before operator set 10 it has the data's type.
    kept = np.ones((), numpy_dtype(x.element_type) if node.opset < 10 else np.bool_)
    return [node.operand(0), np.broadcast_to(kept, x.get_shape())]


def _identity(node: Node) -> Sequence[Value]:
    return [node.operand(0)]


def _sloped(node: Node, slope: SSAValue) -> Sequence[Value]:
    """x, times the slope where it is negative."""
    x = node.operand(0)
    zero = node.tensor(np.zeros((), numpy_dtype(node.type_of(0).element_type)))
    negative = node.emit(graph.CompareOp, x, zero, predicate="lt")
    return [node.emit(graph.WhereOp, negative, node.emit(graph.MulOp, x, slope), x)]


def _leaky_relu(node: Node) -> Sequence[Value]:
    dtype = numpy_dtype(node.type_of(0).element_type)
    return _sloped(node, node.tensor(np.array(node.attribute("alpha", 0.01), dtype)))


def _prelu(node: Node) -> Sequence[Value]:
    return _sloped(node, node.operand(1))


def _celu(node: Node) -> Sequence[Value]:
    """x, and alpha (exp(x / alpha) - 1) below 0. ONNX's own body makes a vector of a scalar."""
    dtype = numpy_dtype(node.type_of(0).element_type)
    alpha = node.tensor(np.array(node.attribute("alpha", 1.0), dtype))
    zero, one = (node.tensor(np.array(v, dtype)) for v in (0, 1))
    x = node.operand(0)
    grown = node.emit(graph.ExpOp, node.emit(graph.DivOp, x, alpha))
    below = node.emit(graph.MulOp, node.emit(graph.SubOp, grown, one), alpha)
    negative = node.emit(graph.CompareOp, x, zero, predicate="lt")
    return [node.emit(graph.WhereOp, negative, below, x)]


HANDLERS: dict[str, Handler] = {
    "Abs": _unary(graph.AbsOp),
    "Add": _binary(graph.AddOp),
    "And": _binary(graph.AndOp),
    "Celu": _celu,
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
    "LeakyRelu": _leaky_relu,
    "Less": _binary(graph.CompareOp, predicate="lt"),
    "LessOrEqual": _binary(graph.CompareOp, predicate="le"),
    "Log": _unary(graph.LogOp),
    "Max": _variadic(graph.MaxOp),
    "Min": _variadic(graph.MinOp),
    "Mul": _binary(graph.MulOp),
    "Neg": _unary(graph.NegOp),
    "Or": _binary(graph.OrOp),
    "PRelu": _prelu,
    "Sigmoid": _unary(graph.SigmoidOp),
    "Sqrt": _unary(graph.SqrtOp),
    "Sub": _binary(graph.SubOp),
    "Sum": _variadic(graph.AddOp),
    "Tanh": _unary(graph.TanhOp),
    "Where": lambda node: [node.emit(graph.WhereOp, *node.operands())],
}
