"""The traced copy of a function: the same code, with NumPy, `range` and helpers of its module replaced."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from irkit.frontends.numpy.creation import TracedNamespace, traced_attribute
from irkit.frontends.numpy.loops import traced_range

Capture = Callable[[str, Any, Callable[[], Any]], Any]
"""Told of each global and each variable of an enclosing function that is read (its name, what it is, what
says what it is later): what stands for it."""


class TracedGlobals(dict[str, Any]):
    """Globals as a traced function sees them; its own assignments stay in the copy."""

    def __init__(self, own: dict[str, Any], capture: Capture, lifts: bool = True) -> None:
        super().__init__(own)
        self.capture, self.own, self.lifts = capture, own, lifts
        own_builtins = {**vars(builtins), "range": traced_range, "__import__": _import}
        super().__setitem__("__builtins__", own_builtins)
        self.known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name == "__builtins__" or value is not self.own.get(name):
            return value
        if name not in self.known:
            later = partial(self.own.get, name, _MISSING)
            self.known[name] = replaced(value, name, self, later)
        return self.known[name]

    @property
    def changed(self) -> list[str]:
        """Names that the function has assigned to."""
        return [
            n for n, v in self.items() if n != "__builtins__" and v is not self.own.get(n, _MISSING)
        ]


_MISSING = object()


def _import(name: str, *rest: Any) -> Any:
    """What `import` does in a traced function: NumPy as it is traced."""
    found = builtins.__import__(name, *rest)
    return TracedNamespace(found) if _is_numpy(found) else found


def _is_numpy(module: types.ModuleType) -> bool:
    return module.__name__ == "numpy" or module.__name__.startswith("numpy.")


def replaced(value: Any, name: str, scope: TracedGlobals, later: Callable[[], Any]) -> Any:
    """What stands for a global or a variable of an enclosing function."""
    if isinstance(value, types.ModuleType):
        return TracedNamespace(value, scope.lifts) if _is_numpy(value) else value
    if value is range:
        return traced_range
    if _of_numpy(value):
        return traced_attribute(value, value.__name__, scope.lifts)
    found = scope.capture(name, value, later)
    if isinstance(found, types.FunctionType) and found.__globals__ is scope.own:
        return with_globals(found, scope)
    return found


def _of_numpy(value: Any) -> bool:
    name = getattr(value, "__name__", None)
    return callable(value) and isinstance(name, str) and getattr(np, name, None) is value


def with_globals(function: types.FunctionType, scope: TracedGlobals) -> types.FunctionType:
    """A copy of a function in other globals."""
    cells = tuple(
        _cell(c, n, scope)
        for c, n in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True)
    )
    made = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, cells or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def _cell(cell: types.CellType, name: str, scope: TracedGlobals) -> types.CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # not yet assigned
        return cell
    new = replaced(value, name, scope, lambda: cell.cell_contents)
    return cell if new is value else types.CellType(new)


def _as_it_is(name: str, value: Any, later: Callable[[], Any]) -> Any:
    return value


_OF_NUMPY: dict[int, TracedGlobals] = {}


def traced_function(function: types.FunctionType) -> Callable[..., Any]:
    """A function of NumPy's own that is written in Python, traced."""
    own = function.__globals__
    scope = _OF_NUMPY.get(id(own))
    if scope is None:
        scope = _OF_NUMPY[id(own)] = TracedGlobals(own, _as_it_is, lifts=False)
    return with_globals(function, scope)
