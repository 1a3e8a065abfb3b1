"""Elementwise functions as ONNX models of one function, for `benchmarks.networks`."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.models.onnx_model import OnnxModel

# The first operator set with Gelu.
_OPSET = 20
SIZES = (10, 14, 18, 22)
"""Logarithms of the numbers of elements."""
ROW = 256
"""Elements of a row of softmax."""

# Name: operator and its attributes.
FUNCTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "Tanh": ("Tanh", {}),
    "tanh-Gelu": ("Gelu", {"approximate": "tanh"}),
    "Erf": ("Erf", {}),
    "Gelu": ("Gelu", {}),
    "Atan": ("Atan", {}),
    "Exp": ("Exp", {}),
    "Sigmoid": ("Sigmoid", {}),
    "Mish": ("Mish", {}),
    "Sin": ("Sin", {}),
    "Log": ("Log", {}),
    "Softmax rows": ("Softmax", {"axis": -1}),
}


def function_model(name: str, elements: int) -> Any:
    """x[rows, 256] → y of the same shape. The logarithm's is of |x| + 0.001, since x may be negative."""
    operator, attributes = FUNCTIONS[name]
    m = OnnxModel(name, 0, _OPSET)
    shape = [math.ceil(elements / ROW), ROW]
    x = "x"
    if operator == "Log":
        x = m.then("Add", m.then("Abs", x), m.number(0.001))
    m.node(operator, [x], "y", **attributes)
    return m.finish({"x": shape}, {"y": shape})
