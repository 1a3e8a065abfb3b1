"""What the variables of the user's function are at some moment, so that two moments can be compared."""

from __future__ import annotations

import types
from typing import Any, cast

from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.masked import MaskedArray
from irkit.frontends.numpy.varying import VaryingArray, parts_of

DEPTH = 6
KEPT = (int, float, complex, str, bytes, bool, type(None), TracedArray, Index)


def snapshot(frame: types.FrameType) -> dict[str, Any]:
    """Variables of a function, enclosing ones that it sees and globals that it has set; containers copied."""
    found = {name: _copied(value, DEPTH) for name, value in frame.f_locals.items()}
    changed: Any = getattr(frame.f_globals, "changed", ())
    for name in changed:
        found[f"global {name}"] = _copied(frame.f_globals[name], DEPTH)
    return found


def _copied(value: Any, depth: int) -> Any:
    """Containers by what is in them, and objects by their attributes; all else as it is."""
    if type(value) in KEPT or depth == 0:
        return value
    if type(value) is MaskedArray:
        return [value.array, value.held]
    if type(value) is VaryingArray:
        return parts_of(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return {k: _copied(v, depth - 1) for k, v in items.items()}
    if isinstance(value, list | tuple):
        return [_copied(v, depth - 1) for v in cast("list[Any]", value)]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, cast("set[Any]", value)))
    attributes = getattr(value, "__dict__", None)
    plain = isinstance(value, type | types.ModuleType | types.FunctionType)
    if isinstance(attributes, dict) and not plain:
        return {"of": id(value), **_copied(attributes, depth - 1)}
    return value
