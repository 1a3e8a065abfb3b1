"""Strings of an ONNX model: a program has their numbers in one list of all that the model names.

The host has the list. A string that the model does not name has a number beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from onnx import NodeProto
from xdsl.ir import SSAValue

from irkit.weights import Array

ML = "ai.onnx.ml"
_READ = {
    (ML, "CategoryMapper"), (ML, "LabelEncoder"), (ML, "OneHotEncoder"), (ML, "ZipMap"),
    ("", "StringNormalizer"), ("", "TfIdfVectorizer"),
}  # fmt: skip
_MOVED = {
    (ML, "ArrayFeatureExtractor"), ("", "Concat"), ("", "Flatten"), ("", "Gather"), ("", "Identity"),
    ("", "Reshape"), ("", "Slice"), ("", "Split"), ("", "Squeeze"), ("", "Transpose"),
    ("", "Unsqueeze"),
}  # fmt: skip
"""Operators that make nothing new of what they move."""


@dataclass
class Strings:
    """The strings that a model names, by number, and which of its values hold such numbers.

    `maps`: values that are maps for the caller, by the labels of their columns.
    """

    numbers: dict[str, int] = field(default_factory=dict[str, int])
    values: set[SSAValue] = field(default_factory=set[SSAValue])
    maps: dict[SSAValue, tuple[Any, ...]] = field(default_factory=dict[SSAValue, tuple[Any, ...]])

    def codes(self, strings: Iterable[Any]) -> Array:
        """The numbers of strings that the model names."""
        texts = [s.decode() if isinstance(s, bytes) else str(s) for s in strings]
        return np.array([self.numbers.setdefault(t, len(self.numbers)) for t in texts], np.int64)

    def mark(self, value: SSAValue) -> SSAValue:
        """`value`, which holds numbers of strings."""
        self.values.add(value)
        return value

    def why_not(self, proto: NodeProto, inputs: Iterable[Any]) -> str:
        """Why a node cannot read these inputs; empty if it can."""
        found = _tensors(inputs)
        if any(v in self.maps for v in found):
            return "maps are only results"
        key = (proto.domain, proto.op_type)
        if key in _READ or not any(v in self.values for v in found):
            return ""
        if key not in _MOVED:
            return "strings are not supported here"
        both = proto.op_type == "Concat" and not all(v in self.values for v in found)
        return "strings beside numbers" if both else ""

    def moved(self, proto: NodeProto, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """What a node makes of strings that it only moves is strings."""
        found = [v for v in _tensors(inputs) if v in self.values]
        if not found or (proto.domain, proto.op_type) not in _MOVED:
            return
        for value in _tensors(outputs):
            self.mark(value)


def _tensors(values: Iterable[Any]) -> list[SSAValue]:
    """Those that are the program's; others are known at import."""
    return [cast(SSAValue, v) for v in values if isinstance(v, SSAValue)]
