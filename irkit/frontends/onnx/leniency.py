"""What ONNX Runtime takes and ONNX's checker does not, put in the checker's terms."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    ValueInfoProto,
)

STANDARD = ("", "ai.onnx")
CLASSICAL = "ai.onnx.ml"
# Of a model that has no operator of the standard domain, any version will do.
_NONE_USED = 15
# ONNX Runtime's own operators, and the operator set that has one of that name.
_MICROSOFT = {"LayerNormalization": 17, "SimplifiedLayerNormalization": math.inf}
# Until version 3 each initializer had to be an input too; nothing else that is read here changed then.
_INPUTS_OF_THEIR_OWN = 4


def make_plain(model: ModelProto) -> None:
    """One name for the standard domain, nodes in order, no negative sizes, no metadata, ONNX Runtime's own
    operators in its domain; in place."""
    del model.metadata_props[:]
    if model.ir_version == _INPUTS_OF_THEIR_OWN - 1:
        model.ir_version = _INPUTS_OF_THEIR_OWN
    for operators in model.opset_import:
        operators.domain = _plain_domain(operators.domain)
    for function in model.functions:
        for operators in function.opset_import:
            operators.domain = _plain_domain(operators.domain)
    for node in nodes_of(model):
        node.domain = _plain_domain(node.domain)
    _name_domains(model)
    for graph in graphs_of(model):
        graph.name = graph.name or "main"
        for value in (*graph.input, *graph.output):
            _forget_negative_sizes(value)
    # ONNX Runtime sorts no branches.
    _sort(model.graph)


def _name_domains(model: ModelProto) -> None:
    """ONNX Runtime has some operators of its own in the standard domain, where no checker knows them, and
    takes models of classical operators that do not name the standard domain."""
    version = max((o.version for o in model.opset_import if not o.domain), default=_NONE_USED)
    theirs = {op for op, since in _MICROSOFT.items() if version < since}
    own = [n for n in nodes_of(model) if n.op_type in theirs and not n.domain]
    for node in own:
        node.domain = "com.microsoft"
    if own and all(o.domain != "com.microsoft" for o in model.opset_import):
        model.opset_import.append(OperatorSetIdProto(domain="com.microsoft", version=1))
    named = {o.domain for o in model.opset_import}
    if "" not in named and CLASSICAL in named:
        model.opset_import.append(OperatorSetIdProto(domain="", version=_NONE_USED))


def _plain_domain(domain: str) -> str:
    return "" if domain in STANDARD else domain


def _forget_negative_sizes(value: ValueInfoProto) -> None:
    """Exporters write -1 where they mean any size."""
    for dim in value.type.tensor_type.shape.dim:
        if dim.dim_value < 0:
            dim.ClearField("dim_value")


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and those inside its nodes' attributes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs(inner)


def graphs_of(model: ModelProto) -> Iterator[GraphProto]:
    """All graphs of the model, those inside its functions too."""
    yield from graphs(model.graph)
    for function in model.functions:
        for node in function.node:
            for inner in subgraphs(node):
                yield from graphs(inner)


def nodes_of(model: ModelProto) -> Iterator[NodeProto]:
    """All nodes of the model, those inside branches and functions too."""
    for graph in graphs_of(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def subgraphs(node: NodeProto) -> list[GraphProto]:
    """The graphs of a node's attributes."""
    found: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH or attribute.HasField("g"):
            found.append(attribute.g)
        found += attribute.graphs
    return found


def reads(node: NodeProto) -> set[str]:
    """Names that a node reads, also from inside its graphs; those defined there may be among them."""
    names = {n for n in node.input if n}
    for graph in subgraphs(node):
        names.update(v.name for v in graph.output)
        for inner in graph.node:
            names |= reads(inner)
    return names


def _sort(graph: GraphProto) -> None:
    """Put the nodes behind those that they read, if they are not; a cycle stays for the checker."""
    maker = {name: number for number, n in enumerate(graph.node) for name in n.output if name}
    before = {
        number: {maker[name] for name in reads(node) if name in maker} - {number}
        for number, node in enumerate(graph.node)
    }
    if all(b < number for number, needed in before.items() for b in needed):
        return
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:
        return
    nodes = [NodeProto.FromString(graph.node[i].SerializeToString()) for i in order]
    del graph.node[:]
    graph.node.extend(nodes)


def drop_dead(graph: GraphProto) -> None:
    """Remove the nodes that no output needs; in place. The nodes must be in order."""
    for node in graph.node:
        for inner in subgraphs(node):
            drop_dead(inner)
    needed = {v.name for v in graph.output}
    for number in reversed(range(len(graph.node))):
        node = graph.node[number]
        if needed.isdisjoint(node.output):
            del graph.node[number]
        else:
            needed |= reads(node)


@contextmanager
def with_types(model: ModelProto) -> Generator[None]:
    """Within, inputs and outputs without a shape, and outputs without a type, have some: the checker asks
    for them, and shape inference finds them."""
    untyped = [v for g in graphs_of(model) for v in g.output if not v.HasField("type")]
    for value in untyped:
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    shapeless = [
        v
        for g in graphs_of(model)
        for v in (*g.input, *g.output, *g.value_info)
        if v.type.HasField("tensor_type") and not v.type.tensor_type.HasField("shape")
    ]
    for value in shapeless:
        value.type.tensor_type.shape.SetInParent()
    try:
        yield
    finally:
        for value in shapeless:
            value.type.tensor_type.ClearField("shape")
        for value in untyped:
            value.ClearField("type")
