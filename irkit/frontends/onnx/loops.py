"""Loop and Scan whose number of rounds is known at import: their bodies, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import tensor_type
from irkit.frontends.onnx.handlers.gather import slice_along
from irkit.frontends.onnx.node import Node, Value

LOOPS = ("Loop", "Scan")
MAX_NODES = 1 << 17
"""So many nodes all rounds of a loop may have: a few bytes of a model must not ask for all memory."""

Body = Callable[[Sequence[Value]], list[Value]]
"""Imports a body once, for values of its inputs; returns its outputs."""


def unrolled(node: Node, body: GraphProto, once: Body) -> Sequence[Value]:
    """What a Loop or Scan computes. Refuses one whose rounds are not known."""
    for index, (value, marked) in enumerate(zip(node.inputs, node.symbolic, strict=True)):
        if marked and not isinstance(value, SSAValue):
            node.refuse(node.name_of(index), "it depends on the dynamic batch size")
    return _loop(node, body, once) if node.proto.op_type == "Loop" else _scan(node, body, once)


def _loop(node: Node, body: GraphProto, once: Body) -> Sequence[Value]:
    most = None if node.given(0) is None else int(node.array(0).item())
    going = node.given(1) is None or bool(node.array(1).item())
    states = [_value(node, i) for i in range(2, len(node.inputs))]
    found: list[list[Value]] = [[] for _ in body.output[1 + len(states) :]]
    number = 0
    while going and (most is None or number < most):
        _check_size(node, body, number + 1)
        outputs = once([np.array(number, np.int64), np.array(True), *states])
        # Also where none is given: ONNX says that the body's is ignored then, and no runtime ignores it.
        going = _known(node, outputs[0])
        if number == 0 and going and not _may_end(body):
            _check_whole(node, body, most)
        states = outputs[1 : 1 + len(states)]
        for elements, value in zip(found, outputs[1 + len(states) :], strict=True):
            elements.append(value)
        number += 1
    return [*states, *(_joined(node, elements, 0) for elements in found)]


def _may_end(body: GraphProto) -> bool:
    """Whether the condition that a body gives may be another in another round: something of which it is
    computed is the number of the round, or a state that the body changes."""
    changing = {body.input[0].name}
    for given, made in zip(body.input[2:], body.output[1:], strict=False):
        changing |= {given.name} if given.name != made.name else set()
    for inner in body.node:
        if not changing.isdisjoint(_reads(inner)):
            changing |= set(inner.output)
    return body.output[0].name in changing


def _reads(node: NodeProto) -> Iterator[str]:
    """Names that a node, or one of a graph in it, reads."""
    yield from node.input
    for attribute in node.attribute:
        for graph_ in (attribute.g, *attribute.graphs):
            yield from (output.name for output in graph_.output)
            for inner in graph_.node:
                yield from _reads(inner)


def _check_whole(node: Node, body: GraphProto, most: int | None) -> None:
    """A loop whose condition holds in all rounds."""
    if most is None:
        node.refuse(
            "",
            "it has no end: there is no trip count, and the condition is the same in every round: expected a "
            "trip count, or a condition that changes",
        )
    _check_size(node, body, most)


def _known(node: Node, condition: Value) -> bool:
    if isinstance(condition, SSAValue):
        node.refuse(
            "", "whether it goes on is computed: its number of rounds must be known at import"
        )
    return bool(condition.item())


def _scan(node: Node, body: GraphProto, once: Body) -> Sequence[Value]:
    if node.opset < 9:
        node.refuse("", "operator set 9 is the first whose Scan is supported")
    count = int(node.attribute("num_scan_inputs", 0))
    first = len(node.inputs) - count
    if count < 1 or first < 0:
        node.refuse(f"num_scan_inputs = {count}", f"it has {len(node.inputs)} inputs")
    states = [_value(node, i) for i in range(first)]
    scanned = [_value(node, i) for i in range(first, len(node.inputs))]
    results = len(body.output) - first
    axes = [
        node.axis(axis, len(_shape(x)))
        for axis, x in zip(_each(node, "scan_input_axes", count), scanned, strict=True)
    ]
    backward = _each(node, "scan_input_directions", count)
    ends, turned = (
        _each(node, "scan_output_axes", results),
        _each(node, "scan_output_directions", results),
    )
    rounds = {_shape(x)[axis] for x, axis in zip(scanned, axes, strict=True)}
    if len(rounds) != 1 or min(rounds) < 0:
        node.refuse(
            "", f"its inputs are not scanned in one known number of rounds, but {sorted(rounds)}"
        )
    total = rounds.pop()
    _check_size(node, body, total)
    found: list[list[Value]] = [[] for _ in range(results)]
    for number in range(total):
        places = [total - 1 - number if back else number for back in backward]
        given = [
            _element(node, x, axis, at) for x, axis, at in zip(scanned, axes, places, strict=True)
        ]
        outputs = once([*states, *given])
        states = outputs[:first]
        for elements, value in zip(found, outputs[first:], strict=True):
            elements.append(value)
    joined = [
        _joined(node, elements[::-1] if back else elements, axis)
        for elements, axis, back in zip(found, ends, turned, strict=True)
    ]
    return [*states, *joined]


def _each(node: Node, name: str, count: int) -> list[int]:
    """An attribute that has a number for each of so many values, 0 where it is left out."""
    numbers: Any = node.attribute(name, [0] * count)
    if len(numbers) != count:
        node.refuse(f"{name} = {numbers}", f"expected {count} numbers")
    return [int(n) for n in numbers]


def _value(node: Node, index: int) -> Value:
    value = node.given(index)
    if value is None:
        node.refuse(f"input {index}", "it is missing")
    return value


def _shape(x: Value) -> list[int]:
    return list(tensor_type(x).get_shape() if isinstance(x, SSAValue) else x.shape)


def _element(node: Node, x: Value, axis: int, at: int) -> Value:
    """Element `at` of an axis, which is gone."""
    if not isinstance(x, SSAValue):
        return np.take(x, at, axis)
    shape = _shape(x)
    del shape[axis]
    return node.emit(graph.ReshapeOp, slice_along(node, x, axis, at, 1), shape=shape)


def _joined(node: Node, elements: Sequence[Value], axis: int) -> Value:
    """Elements of all rounds, side by side along a new axis."""
    if not elements:
        node.refuse("", "it has no rounds, and so no elements of which its output would be")
    arrays = [x for x in elements if not isinstance(x, SSAValue)]
    axis = node.axis(axis, len(_shape(elements[0])) + 1)
    if len(arrays) == len(elements):
        return np.stack(arrays, axis)
    parts = [x if isinstance(x, SSAValue) else node.tensor(x) for x in elements]
    shape = _shape(parts[0])
    grown = [node.emit(graph.ReshapeOp, x, shape=[*shape[:axis], 1, *shape[axis:]]) for x in parts]
    return grown[0] if len(grown) == 1 else node.emit(graph.ConcatOp, *grown, axis=axis)


def _check_size(node: Node, body: GraphProto, rounds: int) -> None:
    if rounds * max(1, len(body.node)) > MAX_NODES:
        node.refuse(
            "", f"{rounds} rounds of {len(body.node)} nodes are more than {MAX_NODES} nodes"
        )
