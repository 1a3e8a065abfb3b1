"""Operators that ONNX Runtime's optimiser makes of several, as the standard operators that they are.

Definitions: `docs/ContribOperators.md` of ONNX Runtime. Bodies are what exporters write, so that passes see
in an optimised model what they see in the one that it was made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from irkit.dialects.types import numpy_dtype
from irkit.frontends.onnx.node import Node

DOMAIN = "com.microsoft"
OPSET = 20
"""The operator set of bodies: the first that has Gelu."""

ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "Elu": ("alpha",),
    "LeakyRelu": ("alpha",),
    "ThresholdedRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}
"""Functions behind a convolution or a product, and what their parameters are called."""


class _Body:
    """Nodes, one after another; names of what they make start with `prefix`."""

    def __init__(self, node: Node, prefix: str) -> None:
        self.node, self.prefix = node, prefix
        self.nodes: list[NodeProto] = []

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node of one result."""
        return self.several(op_type, 1, *inputs, **attributes)[0]

    def several(self, op_type: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node of `count` results."""
        number = len(self.nodes)
        outputs = [f"{self.prefix}{number}_{n}" for n in range(count)]
        self.nodes.append(helper.make_node(op_type, list(inputs), outputs, **attributes))
        return outputs

    def number(self, value: float) -> str:
        """A constant of the element type of input 0."""
        dtype = numpy_dtype(self.node.type_of(0).element_type)
        return self.add("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def name(self, index: int) -> str:
        """Input `index`; "" if it is left out."""
        given = self.node.proto.input
        return given[index] if index < len(given) else ""

    def plus(self, x: str, index: int) -> str:
        """`x`, plus input `index` if it is given."""
        return self.add("Add", x, self.name(index)) if self.name(index) else x

    def times(self, x: str, factor: float) -> str:
        """`x` times a number."""
        return x if factor == 1 else self.add("Mul", x, self.number(factor))

    def kept(self, *without: str) -> dict[str, Any]:
        """The node's own attributes, but those that are named."""
        names = [a.name for a in self.node.proto.attribute if a.name not in without]
        return {name: self.node.attribute(name, None) for name in names}


def _activated(body: _Body, x: str, values: Sequence[float]) -> str:
    """`x` behind the function that attribute `activation` names, of these parameters."""
    name = body.node.attribute("activation", "")
    if not name:
        return x
    if name not in ACTIVATIONS:
        body.node.refuse(f"activation = {name!r}", f"only {', '.join(ACTIVATIONS)} are supported")
    parameters = ACTIVATIONS[name]
    if len(values) < len(parameters):
        body.node.refuse(f"activation = {name!r}", f"it has {len(parameters)} parameters")
    values = values[: len(parameters)]
    if name == "Clip":
        return body.add(name, x, *map(body.number, values))
    return body.add(name, x, **dict(zip(parameters, values, strict=True)))


def _fused_conv(body: _Body) -> list[str]:
    """Inputs x, filters, bias, and what is added before the activation."""
    parameters = body.node.attribute("activation_params", [])
    own = body.kept("activation", "activation_params")
    y = body.add("Conv", *map(body.name, range(3)), **own)
    return [_activated(body, body.plus(y, 3), parameters)]


def _fused_gemm(body: _Body) -> list[str]:
    named = ("activation_alpha", "activation_beta", "activation_gamma")
    defaults = {
        "LeakyRelu": (0.01,),
        "Elu": (1.0,),
        "ThresholdedRelu": (1.0,),
        "HardSigmoid": (0.2, 0.5),
    }
    usual = defaults.get(body.node.attribute("activation", ""), ())
    values = [body.node.attribute(n, d) for n, d in zip(named, usual, strict=False)]
    body.node.ignore(*named)
    y = body.add("Gemm", *map(body.name, range(3)), **body.kept("activation", *named))
    return [_activated(body, y, values)]


def _factor(body: _Body, index: int, letter: str) -> str:
    """A factor of FusedMatMul as MatMul reads it.

    transBatchA says that A's rows are its first dimension, in front of the batch; transA that rows and
    columns are then the other way round. Neither says anything of a vector.
    """
    rank = body.node.type_of(index).get_num_dims()
    turned = bool(body.node.attribute(f"trans{letter}", 0))
    behind = bool(body.node.attribute(f"transBatch{letter}", 0))
    if rank < 2:
        return body.name(index)
    order = list(range(rank))
    if behind:
        order = [*order[1:-1], 0, rank - 1]
    if turned:
        order[-2:] = reversed(order[-2:])
    return (
        body.name(index)
        if order == sorted(order)
        else body.add("Transpose", body.name(index), perm=order)
    )


def _fused_matmul(body: _Body) -> list[str]:
    y = body.add("MatMul", _factor(body, 0, "A"), _factor(body, 1, "B"))
    return [body.times(y, float(body.node.attribute("alpha", 1.0)))]


def _gelu(approximate: str) -> Callable[[_Body], list[str]]:
    """Of input 0, plus input 1 if there is one."""
    return lambda body: [body.add("Gelu", body.plus(body.name(0), 1), approximate=approximate)]


def _quick_gelu(body: _Body) -> list[str]:
    x = body.name(0)
    gate = body.add("Sigmoid", body.times(x, float(body.node.attribute("alpha", 1.702))))
    return [body.add("Mul", x, gate)]


BODIES: dict[str, Callable[[_Body], list[str]]] = {
    "BiasGelu": _gelu("none"),
    "FastGelu": _gelu("tanh"),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": _gelu("none"),
    "QuickGelu": _quick_gelu,
}
"""Operator of com.microsoft → its nodes' results, which it adds to a body."""


def fused_body(node: Node, prefix: str) -> tuple[list[NodeProto], list[str], int]:
    """Nodes of an operator of `BODIES`, the names of its outputs, and the operator set; names inside
    start with `prefix`. Raises Refusal."""
    body = _Body(node, prefix)
    outputs = BODIES[node.proto.op_type](body)
    node.check_attributes()
    return body.nodes, outputs, OPSET
