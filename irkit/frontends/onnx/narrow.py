"""ONNX's integers of 2 and 4 bits: a program has them in bytes, and these are marked.

Arrays that are known at import are ml_dtypes'. What reads a marked value is what ONNX lets read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, helper
from xdsl.ir import SSAValue

from irkit.narrow_integers import NarrowInteger, narrow_of
from irkit.weights import Array

_READ = {
    ("", "Cast"), ("", "CastLike"), ("", "DequantizeLinear"), ("", "If"), ("", "Loop"),
    ("", "QuantizeLinear"), ("", "Scan"), ("", "Shape"), ("", "Size"),
    ("com.microsoft", "DequantizeLinear"), ("com.microsoft", "GatherBlockQuantized"),
    ("com.microsoft", "QuantizeLinear"),
}  # fmt: skip
_MOVED = {
    ("", "Flatten"), ("", "Identity"), ("", "Reshape"), ("", "Squeeze"), ("", "Transpose"),
    ("", "Unsqueeze"),
}  # fmt: skip
"""Operators whose result has the elements of their first input."""


def narrow_code(code: int) -> NarrowInteger | None:
    """The type that one of ONNX's numbers of element types names, if it is so narrow."""
    try:
        return narrow_of(np.dtype(helper.tensor_dtype_to_np_dtype(code)))
    except KeyError:
        return None


@dataclass
class NarrowValues:
    """Which values of a program are such integers."""

    marks: dict[SSAValue, NarrowInteger] = field(default_factory=dict[SSAValue, NarrowInteger])

    def of(self, value: SSAValue | Array | None) -> NarrowInteger | None:
        """The type of `value` if it is so narrow."""
        if value is None:
            return None
        return self.marks.get(value) if isinstance(value, SSAValue) else narrow_of(value.dtype)

    def mark(self, value: SSAValue, kind: NarrowInteger) -> SSAValue:
        """`value`, whose bytes are integers of `kind`."""
        self.marks[value] = kind
        return value

    def why_not(self, proto: NodeProto, inputs: Iterable[SSAValue | Array | None]) -> str:
        """Why a node cannot read these inputs; empty if it can."""
        key = (proto.domain, proto.op_type)
        if key in _READ or key in _MOVED:
            return ""
        found = [
            kind
            for v in inputs
            if (isinstance(v, SSAValue) or proto.domain) and (kind := self.of(v))
        ]
        return f"elements of {found[0].name} are not supported here" if found else ""

    def moved(
        self,
        proto: NodeProto,
        inputs: Iterable[SSAValue | Array | None],
        outputs: Iterable[SSAValue | Array],
    ) -> None:
        """What a node makes of such integers that it only moves is of their type."""
        kind = self.of(next(iter(inputs), None))
        if kind is None or (proto.domain, proto.op_type) not in _MOVED:
            return
        for value in outputs:
            if isinstance(value, SSAValue):
                self.mark(value, kind)
