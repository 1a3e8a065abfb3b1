"""What a model makes of strings of its inputs before they are numbers: steps of the host.

StringNormalizer makes strings that no model names, and drops some: as many are left as data say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from irkit.frontends.onnx.leniency import reads
from irkit.model_info import StringStep
from irkit.weights import Array

Extent = int | str
"""A size, or the name of an open one."""
Rule = Callable[["_Reading"], tuple[str, dict[str, Any], list[Extent]]]
"""Kind, facts and shape of what a node makes. Raises NoStep."""
CASES = ("NONE", "LOWER", "UPPER")
TURKIC = ("az", "tr")
_LOCALE = re.compile(r"([a-z]{2,3}|C|POSIX)([_-][A-Za-z]{2,4})?(\.[\w-]+)?(@\w+)?")


class NoStep(Exception):
    """A node is no step of the host, and why."""


@dataclass
class _Reading:
    """A node that reads strings of a known rank."""

    proto: NodeProto
    shape: list[Extent]
    constants: Mapping[str, Array]
    attributes: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.attributes = {a.name: helper.get_attribute_value(a) for a in self.proto.attribute}

    def numbers(self, attribute: str) -> list[int] | None:
        """What is an attribute in some operator sets, and input 1 in others; None if neither is there."""
        if attribute in self.attributes:
            return list(self.attributes[attribute])
        name = self.proto.input[1] if len(self.proto.input) > 1 else ""
        if not name:
            return None
        if name not in self.constants:
            raise NoStep("its shape is not known at import")
        return cast(list[int], self.constants[name].reshape(-1).tolist())


def take_string_steps(
    model: ModelProto, known: Collection[str]
) -> tuple[tuple[StringStep, ...], tuple[str, ...]]:
    """The steps that the host takes, and the inputs of the model as it was; both empty if there are none.

    In `model` what they make is inputs then, and they are gone. Only what a StringNormalizer needs is taken,
    of inputs whose values are not `known`.
    """
    graph = model.graph
    initial = {t.name for t in graph.initializer}
    given = tuple(v.name for v in graph.input if v.name not in {*initial, *known})
    found = _steps(model, known)
    last = [s for s in found if s.kind == "normalise"]
    if not last:
        return (), ()
    needed = _needed(found, {s.result for s in last})
    gone = {s.result for s in needed}
    kept = [n for n in graph.node if gone.isdisjoint(n.output)]
    wanted = {v.name for v in graph.output}.union(*map(reads, kept))
    nodes = [NodeProto.FromString(n.SerializeToString()) for n in kept]
    del graph.node[:]
    graph.node.extend(nodes)
    sources = {s.source for s in needed}
    for number in reversed(range(len(graph.input))):
        if (name := graph.input[number].name) in sources and name not in wanted:
            del graph.input[number]
    for step in needed:
        if step.result in wanted:
            graph.input.append(
                helper.make_tensor_value_info(step.result, TensorProto.STRING, step.shape)
            )
    stale = [v for v in graph.value_info if v.name in gone]
    for value in stale:
        graph.value_info.remove(value)
    return tuple((s.kind, s.source, s.result, s.facts) for s in needed), given


@dataclass(frozen=True)
class _Step:
    kind: str
    source: str
    result: str
    facts: dict[str, Any]
    shape: list[Extent]


def _steps(model: ModelProto, known: Collection[str]) -> list[_Step]:
    """All nodes that could be steps, in order."""
    shapes = {
        v.name: _extents(v)
        for v in model.graph.input
        if v.type.tensor_type.elem_type == TensorProto.STRING
        and v.type.tensor_type.HasField("shape")
        and v.name not in known
    }
    constants = _constants(model)
    found: list[_Step] = []
    for node in model.graph.node:
        source = node.input[0] if node.input else ""
        if node.domain or node.op_type not in _RULES or source not in shapes:
            continue
        try:
            kind, facts, shape = _RULES[node.op_type](_Reading(node, shapes[source], constants))
        except NoStep:
            continue
        result = node.output[0]
        shapes[result] = shape
        found.append(_Step(kind, source, result, facts, shape))
    return found


def why_no_step(proto: NodeProto, rank: int) -> str:
    """What is wrong with a StringNormalizer of strings of so many dimensions; empty if nothing is."""
    try:
        _normalised(_Reading(proto, ["?"] * rank, {}))
    except NoStep as reason:
        return str(reason)
    return ""


def _needed(found: Sequence[_Step], wanted: set[str]) -> list[_Step]:
    kept: list[_Step] = []
    for step in reversed(found):
        if step.result in wanted:
            wanted.add(step.source)
            kept.append(step)
    return kept[::-1]


def _extents(value: Any) -> list[Extent]:
    """The shape of an input; an open size without a name has one of its place."""
    dims = value.type.tensor_type.shape.dim
    return [
        d.dim_value if d.HasField("dim_value") else d.dim_param or f"{value.name}[{axis}]"
        for axis, d in enumerate(dims)
    ]


def _constants(model: ModelProto) -> dict[str, Array]:
    found = {
        t.name: numpy_helper.to_array(t)
        for t in model.graph.initializer
        if t.data_type == TensorProto.INT64
    }
    for node in model.graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.name == "value" and attribute.t.data_type == TensorProto.INT64:
                found[node.output[0]] = numpy_helper.to_array(attribute.t)
            elif attribute.name == "value_ints":
                found[node.output[0]] = np.array(attribute.ints, np.int64)
    return found


# Rules


def _normalised(node: _Reading) -> tuple[str, dict[str, Any], list[Extent]]:
    at, rank = node.attributes, len(node.shape)
    if rank not in (1, 2) or (rank == 2 and isinstance(node.shape[0], int) and node.shape[0] != 1):
        raise NoStep("it reads strings of shape C or 1xC alone")
    case = at.get("case_change_action", b"NONE").decode()
    if case not in CASES:
        raise NoStep(f"case_change_action = {case!r}: expected {', '.join(CASES)}")
    facts = {
        "case": case,
        "sensitive": bool(at.get("is_case_sensitive", 0)),
        "stopwords": [word.decode() for word in at.get("stopwords", [])],
        "letters": _letters(at.get("locale", b"en_US.UTF-8").decode()),
    }
    last = f"{node.proto.output[0]}[kept]" if facts["stopwords"] else node.shape[-1]
    return "normalise", facts, [1, last] if rank == 2 else [last]


def _letters(locale: str) -> str:
    """Which letters have cases in a locale, and which: "all", "turkic" or "ascii"."""
    found = _LOCALE.fullmatch(locale)
    if found is None:
        raise NoStep(f"locale = {locale!r}: expected a name like en_US, tr_TR.UTF-8 or C")
    language, codes = found[1], (found[3] or "").lower().replace("-", "")
    if codes not in ("", ".utf8"):
        raise NoStep(f"locale = {locale!r}: only UTF-8 is supported")
    if language in ("C", "POSIX"):
        return "all" if codes else "ascii"
    return "turkic" if language in TURKIC else "all"


def _same(node: _Reading) -> tuple[str, dict[str, Any], list[Extent]]:
    return _into(node.shape)


def _reshaped(node: _Reading) -> tuple[str, dict[str, Any], list[Extent]]:
    """To a shape whose -1 is what is left, a number or the one open size."""
    target = node.numbers("shape")
    if target is None or node.attributes.get("allowzero", 0):
        raise NoStep("its shape is not known at import")
    made: list[Extent] = [
        node.shape[i] if size == 0 and i < len(node.shape) else size
        for i, size in enumerate(target)
    ]
    left = [size for size in node.shape if size not in made or isinstance(size, int)]
    numbers = int(np.prod([s for s in left if isinstance(s, int)], dtype=np.int64))
    others = int(np.prod([s for s in made if isinstance(s, int) and s > 0], dtype=np.int64))
    opened = [s for s in left if isinstance(s, str)]
    if made.count(-1) > 1 or any(isinstance(s, int) and s < -1 for s in made):
        raise NoStep("its shape makes no sense")
    if -1 not in made:
        return _into(made)
    if len(opened) > 1 or (opened and numbers != others):
        rest: Extent = f"{node.proto.output[0]}[rest]"
    else:
        rest = opened[0] if opened else numbers // max(others, 1)
    return _into([rest if size == -1 else size for size in made])


def _flattened(node: _Reading) -> tuple[str, dict[str, Any], list[Extent]]:
    rank = len(node.shape)
    axis = int(node.attributes.get("axis", 1))
    axis += rank if axis < 0 else 0
    return _into([_times(node.shape[:axis]), _times(node.shape[axis:])])


def _times(sizes: Sequence[Extent]) -> Extent:
    """The product of sizes, of which one open one is nothing else beside ones."""
    opened = [s for s in sizes if isinstance(s, str)]
    number = int(np.prod([s for s in sizes if isinstance(s, int)], dtype=np.int64))
    if not opened:
        return number
    if len(opened) > 1 or number != 1:
        raise NoStep("it folds an open size into others")
    return opened[0]


def _squeezed(node: _Reading) -> tuple[str, dict[str, Any], list[Extent]]:
    axes = node.numbers("axes")
    if axes is None and any(isinstance(s, str) for s in node.shape):
        raise NoStep("which sizes are 1 is not known at import")
    rank = len(node.shape)
    gone = (
        {a % rank for a in axes}
        if axes is not None
        else {i for i, s in enumerate(node.shape) if s == 1}
    )
    return _into([s for i, s in enumerate(node.shape) if i not in gone])


def _unsqueezed(node: _Reading) -> tuple[str, dict[str, Any], list[Extent]]:
    axes = node.numbers("axes") or []
    rank = len(node.shape) + len(axes)
    ones, rest = {a % rank for a in axes}, iter(node.shape)
    return _into([1 if i in ones else next(rest) for i in range(rank)])


def _into(shape: list[Extent]) -> tuple[str, dict[str, Any], list[Extent]]:
    if sum(isinstance(s, str) for s in shape) > 1:
        raise NoStep("it has several open sizes")
    return "reshape", {"shape": [-1 if isinstance(s, str) else s for s in shape]}, shape


_RULES: dict[str, Rule] = {
    "Flatten": _flattened,
    "Identity": _same,
    "Reshape": _reshaped,
    "Squeeze": _squeezed,
    "StringNormalizer": _normalised,
    "Unsqueeze": _unsqueezed,
}
