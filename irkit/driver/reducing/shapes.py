"""Modules with a smaller size wherever a size stands: in types, and in the properties that go with them.

On the text, so that it works at every level: what does not fit together then does not verify.
"""

from __future__ import annotations

import re

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from irkit.driver.files.printing import module_text
from irkit.weights import WeightStore

_TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)x)+)")
_ARRAY = re.compile(r"array<i64: ([^>]*)>")
_WEIGHT = re.compile(r"dense_resource<(\w+)> : tensor<((?:\d+x)+)")


def sizes(module: ModuleOp) -> list[int]:
    """All static sizes above 1 of tensors, the largest first."""
    found = {int(s) for dims in _TENSOR.findall(module_text(module)) for s in _extents(dims)}
    return sorted((s for s in found if s > 1), reverse=True)


def smaller_than(size: int) -> list[int]:
    """What to try instead of a size, the smallest first."""
    return sorted({1, 2, size // 2, size - 1} - {0, size})


def resized(module: ModuleOp, size: int, to: int, weights: WeightStore) -> str:
    """The module's text, in generic form, with every extent `size` made `to`. Weights of another shape are
    added to `weights`: the first of their elements."""
    text = _TENSOR.sub(lambda m: f"tensor<{_replaced(m[1], size, to)}", _generic(module))
    text = _ARRAY.sub(lambda m: f"array<i64: {_entries(m[1], size, to)}>", text)
    return _WEIGHT.sub(lambda m: _cut(m, weights), text)


def _generic(module: ModuleOp) -> str:
    return module_text(module, generic=True)


def _extents(dims: str) -> list[str]:
    return [d for d in dims.split("x") if d.isdigit()]


def _replaced(dims: str, size: int, to: int) -> str:
    return "x".join(str(to) if d == str(size) else d for d in dims.split("x"))


def _entries(entries: str, size: int, to: int) -> str:
    return ", ".join(str(to) if e == str(size) else e for e in entries.split(", "))


def _cut(match: re.Match[str], weights: WeightStore) -> str:
    name, shape = match[1], [int(d) for d in _extents(match[2])]
    if name in weights and list(weights[name].shape) != shape:
        name = weights.add(np.resize(weights[name], shape))
    return f"dense_resource<{name}> : tensor<{match[2]}"
