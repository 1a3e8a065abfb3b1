"""Einsum: sums of products over named dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irkit.dialects.graph.composition import OpenOps
from irkit.errors import UnsupportedError
from irkit.frontends.array_ops import einstein
from irkit.frontends.onnx.node import Handler, Node, Value


def _einsum(node: Node) -> Sequence[Value]:
    operands, o = node.operands(), OpenOps[SSAValue](node.emit_all, node.tensor)
    equation = str(node.attribute("equation", ""))
    try:
        return [einstein.einsum(o, equation, operands)]
    except (UnsupportedError, ValueError) as error:
        node.refuse(f"equation = {equation!r}", str(error))


HANDLERS: dict[str, Handler] = {"Einsum": _einsum}
