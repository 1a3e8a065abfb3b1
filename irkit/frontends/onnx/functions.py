"""Operators that are defined by other operators, by ONNX or by us: the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TypeProto,
    defs,
    helper,
)
from xdsl.ir import SSAValue

from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.fused import BODIES, DOMAIN, fused_body
from irkit.frontends.onnx.node import Node, Value


def has_body(proto: NodeProto, opset: int) -> bool:
    """Whether the operator set, or `fused.py`, says what the operator is by others."""
    if proto.domain:
        return proto.domain == DOMAIN and proto.op_type in BODIES
    schema = _schema(proto.op_type, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def body_of(node: Node, prefix: str) -> tuple[list[NodeProto], list[str], int]:
    """Nodes of the operator's body, the names of its outputs, and its operator set.

    Names inside start with `prefix`; inputs are named as the node's own.
    """
    if node.proto.domain:
        return fused_body(node, prefix)
    function = _function(node)
    proto = node.proto
    names = dict(zip(function.input, proto.input, strict=False))
    # What is not given has no name.
    names |= {n: "" for n in list(function.input)[len(proto.input) :]} | {"": ""}
    given = {a.name: a for a in function.attribute_proto}
    given |= _defaults(node) | {a.name: a for a in proto.attribute}
    nodes = [_renamed(n, names, given, prefix) for n in function.node]
    opset = max((o.version for o in function.opset_import if not o.domain), default=node.opset)
    return nodes, [names.get(n, f"{prefix}{n}") for n in function.output], opset


def _schema(op_type: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset, "")
    except defs.SchemaError:
        return None


def _function(node: Node) -> FunctionProto:
    """The body that belongs to the node's operator set, for the types of its inputs."""
    schema = _schema(node.proto.op_type, node.opset)
    versions = schema.function_opset_versions
    if schema.has_function:
        return FunctionProto.FromString(
            schema.get_function_with_opset_version(_version(versions, node.opset))
        )
    version = _version(schema.context_dependent_function_opset_versions, node.opset)
    types = [_type_of(v).SerializeToString() for v in node.inputs]
    made = schema.get_context_dependent_function_with_opset_version(
        version, node.proto.SerializeToString(), types
    )
    return FunctionProto.FromString(made)


def _defaults(node: Node) -> dict[str, AttributeProto]:
    """Values of the operator's attributes that the operator set names."""
    attributes = _schema(node.proto.op_type, node.opset).attributes
    found = {name: a.default_value for name, a in attributes.items()}
    return {name: a for name, a in found.items() if a.type != AttributeProto.UNDEFINED}


def _version(versions: Sequence[int], opset: int) -> int:
    """The newest body for the operator set, or else the oldest: the operator is the same in all."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _type_of(value: Value | None) -> TypeProto:
    if value is None:
        return TypeProto()
    if isinstance(value, SSAValue):
        t = tensor_type(value)
        dtype, shape = numpy_dtype(t.element_type), [*t.get_shape()]
    else:
        dtype, shape = value.dtype, [*value.shape]
    sizes = [None if s == DYNAMIC else s for s in shape]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), sizes)


def _renamed(
    proto: NodeProto,
    names: dict[str, str],
    given: Mapping[str, AttributeProto],
    prefix: str,
) -> NodeProto:
    """A copy of a body's node with names of the graph it goes into, and attributes filled in."""
    made = NodeProto()
    made.CopyFrom(proto)
    for field in (made.input, made.output):
        for number, name in enumerate(field):
            field[number] = names.setdefault(name, f"{prefix}{name}")
    del made.attribute[:]
    for attribute in proto.attribute:
        found = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if found is not None:
            made.attribute.add().CopyFrom(found)
            made.attribute[-1].name = attribute.name
            if found.HasField("g"):
                _rename_graph(made.attribute[-1].g, names, given, prefix)
    return made


def _rename_graph(
    graph: GraphProto, names: dict[str, str], given: Mapping[str, AttributeProto], prefix: str
) -> None:
    """Rename a branch or a loop's body in place; it sees the names around it."""
    inside = [_renamed(n, names, given, prefix) for n in graph.node]
    del graph.node[:]
    graph.node.extend(inside)
    for t in graph.initializer:
        t.name = names.setdefault(t.name, f"{prefix}{t.name}")
    for v in (*graph.input, *graph.output):
        v.name = names.setdefault(v.name, f"{prefix}{v.name}")
