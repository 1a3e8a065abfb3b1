"""What the variables of the user's function are at some moment, so that two moments can be compared."""

from __future__ import annotations

import collections
import operator
import types
from typing import Any, cast

from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.masked import MaskedArray
from irkit.frontends.numpy.states import of_library
from irkit.frontends.numpy.varying import VaryingArray, parts_of
from irkit.frontends.numpy.while_source import OWN

DEPTH = 24
KEPT = (int, float, complex, str, bytes, bool, type(None), TracedArray, Index)


def snapshot(frame: types.FrameType) -> dict[str, Any]:
    """Variables of a function, enclosing ones that it sees and globals that it has set; containers copied."""
    look = _Look()
    held = {n: v for n, v in frame.f_locals.items() if not n.startswith(OWN)}
    found = {name: look.copied(value, DEPTH) for name, value in held.items()}
    changed: Any = getattr(frame.f_globals, "changed", ())
    for name in changed:
        found[f"global {name}"] = look.copied(frame.f_globals[name], DEPTH)
    return found


class _Look:
    """One look at all variables: what is met again is not gone through again."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []

    def copied(self, value: Any, depth: int) -> Any:
        """Containers by what is in them, objects by their attributes, functions by what they enclose; of an
        iterator how far it has come. What changes unseen is an object that equals no other."""
        if type(value) in KEPT:
            return value
        if depth == 0:
            return object()
        if type(value) is MaskedArray:
            return [value.array, value.held]
        if type(value) is VaryingArray:
            return parts_of(value)
        if id(value) in self._seen:
            return f"seen {self._seen[id(value)]}"
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        return self._contents(value, depth - 1)

    def _contents(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value)
            return {k: self.copied(v, depth) for k, v in items.items()}
        if isinstance(value, list | tuple | collections.deque):
            return [self.copied(v, depth) for v in list(cast("list[Any]", value))]
        if isinstance(value, set | frozenset):
            return sorted(map(repr, cast("set[Any]", value)))
        if isinstance(value, bytearray | memoryview):
            return bytes(cast(Any, value))
        if isinstance(value, types.FunctionType):
            return self._function(value, depth)
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            return [value.__name__, self.copied(value.__self__, depth)]
        if hasattr(value, "__next__"):
            return _progress(value)
        return self._object(value, depth)

    def _function(self, function: types.FunctionType, depth: int) -> Any:
        """Itself, and what it keeps beside the variables of the function that it stands in."""
        if of_library(function):
            return function
        cells = [self.copied(_cell(c), depth) for c in function.__closure__ or ()]
        held = (function.__defaults__, function.__kwdefaults__, function.__dict__)
        return [function, *cells, *(self.copied(v, depth) for v in held)]

    def _object(self, value: Any, depth: int) -> Any:
        if isinstance(value, types.ModuleType):
            return value
        held: Any = getattr(value, "__dict__", None)
        own = dict(held) if held is not None else {}
        if isinstance(value, type):
            plain = of_library(value)
            names = [] if plain else [n for n in own if not n.startswith("__")]
            return [value, {n: self.copied(own[n], depth) for n in names}]
        for name in _slots(cast(Any, type(value))):
            if hasattr(value, name):
                own[name] = getattr(value, name)
        if not own:
            return value
        found = {k: self.copied(v, depth) for k, v in own.items()}
        return {"of": id(value), "type": self.copied(type(value), depth), **found}


def _progress(iterator: Any) -> Any:
    """What is left of an iterator, if it says so."""
    if not hasattr(iterator, "__length_hint__"):
        return object()
    return [iterator, operator.length_hint(iterator)]


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [n for n in found if n not in ("__dict__", "__weakref__")]


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None
