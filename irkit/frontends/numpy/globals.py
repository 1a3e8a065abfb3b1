"""The traced copy of a function: the same code, with NumPy, `range` and helpers of its module replaced."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import annotation_of
from irkit.frontends.numpy.array_class import TracedArrayClass
from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.creation import TracedNamespace, TracedType, traced_attribute
from irkit.frontends.numpy.library import is_of_numpy
from irkit.frontends.numpy.loops import traced_range
from irkit.frontends.numpy.objects import is_booster, is_estimator
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.while_rounds import Span, WhileRounds
from irkit.frontends.numpy.while_source import ROUNDS, SPAN, told_of_rounds

Capture = Callable[[str, Any, Callable[[], Any]], Any]
"""Told of each global and each variable of an enclosing function that is read (its name, what it is, what
says what it is later): what stands for it."""


class TracedGlobals(dict[str, Any]):
    """Globals as a traced function sees them; its own assignments stay in the copy."""

    def __init__(
        self,
        own: dict[str, Any],
        capture: Capture,
        lifts: bool = True,
        stand_in: Callable[[Any], Any] | None = None,
    ) -> None:
        """`stand_in`: what stands for a module, or a function of another one; without it they are as they
        are, but for NumPy's."""
        super().__init__(own)
        self.capture, self.own, self.lifts = capture, own, lifts
        self.stand_in = stand_in or partial(numpy_stand_in, lifts=lifts)
        told = {ROUNDS: WhileRounds, SPAN: Span}
        own_builtins = {**vars(builtins), "__import__": self._import, **told}
        if stand_in is None or tracing():
            own_builtins["range"] = traced_range
            own_builtins["type"] = TracedType
        super().__setitem__("__builtins__", own_builtins)
        self.known: dict[str, Any] = {}
        self.begun: dict[int, types.CellType] = {}
        """Functions of which a copy is being made: what holds the copy, for those that call themselves."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name == "__builtins__" or value is not self.own.get(name):
            return value
        if name not in self.known:
            later = partial(self.own.get, name, _MISSING)
            self.known[name] = replaced(value, name, self, later)
        return self.known[name]

    def _import(self, name: str, *rest: Any) -> Any:
        """What `import` does in a traced function."""
        return self.stand_in(builtins.__import__(name, *rest))

    @property
    def changed(self) -> list[str]:
        """Names that the function has assigned to."""
        return [
            n for n, v in self.items() if n not in _PYTHONS and v is not self.own.get(n, _MISSING)
        ]


_PYTHONS = ("__builtins__", "__warningregistry__")
"""What Python itself puts there: where a function is run, and where it warns."""
_MISSING = object()


def _is_numpy(module: types.ModuleType) -> bool:
    return module.__name__ == "numpy" or module.__name__.startswith("numpy.")


def replaced(value: Any, name: str, scope: TracedGlobals, later: Callable[[], Any]) -> Any:
    """What stands for a global or a variable of an enclosing function."""
    if isinstance(value, types.ModuleType) or is_of_numpy(value):
        return scope.stand_in(value)
    if value is range:
        return scope["__builtins__"]["range"]
    found = scope.capture(name, value, later)
    if type(cast(object, found)) is tuple:
        return _with_array_class(found)
    if _is_own(found, scope):
        return with_globals(found, scope)
    return found if found is not value else scope.stand_in(value)


def _with_array_class(classes: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple from outside, of which a type may be one."""
    return tuple(TracedArrayClass if v is np.ndarray else v for v in classes)


def given(value: Any, scope: TracedGlobals) -> Any:
    """What stands for something that is no global: a function as one that is, all else as it is."""
    if _is_own(value, scope):
        return with_globals(value, scope)
    function = callable(value) and not isinstance(value, type | TracedArray)
    known = (
        function or isinstance(value, types.ModuleType) or is_estimator(value) or is_booster(value)
    )
    return scope.stand_in(value) if known else value


def _is_own(value: Any, scope: TracedGlobals) -> bool:
    """Whether it is another function of the traced one's module, of which nothing was said."""
    plain = isinstance(value, types.FunctionType) and value.__globals__ is scope.own
    return plain and annotation_of(value) is None


def numpy_stand_in(value: Any, lifts: bool = True) -> Any:
    """What stands for a module, or a function, of NumPy; others are as they are."""
    if isinstance(value, types.ModuleType):
        return TracedNamespace(value, lifts) if _is_numpy(value) else value
    return traced_attribute(value, value.__name__, lifts) if is_of_numpy(value) else value


def with_globals(function: types.FunctionType, scope: TracedGlobals) -> types.FunctionType:
    """A copy of a function in other globals."""
    scope.begun[id(function)] = own = types.CellType()
    cells = tuple(
        _cell(c, n, scope)
        for c, n in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True)
    )
    defaults = function.__defaults__
    made = types.FunctionType(
        told_of_rounds(function.__code__, _leaving()) if scope.lifts else function.__code__,
        scope,
        function.__name__,
        defaults
        and tuple(
            _default(v, n, scope, partial(_nth, function, n)) for n, v in enumerate(defaults)
        ),
        cells or None,
    )
    named = function.__kwdefaults__
    made.__kwdefaults__ = named and {
        k: _default(v, k, scope, partial(_named, function, k)) for k, v in named.items()
    }
    made.__qualname__ = function.__qualname__
    own.cell_contents = made
    del scope.begun[id(function)]
    return made


def _leaving() -> frozenset[str]:
    """What this trace knows of `for` statements that data end."""
    return frozenset(recorder().leaving) if tracing() else frozenset()


def _default(value: Any, of: int | str, scope: TracedGlobals, later: Callable[[], Any]) -> Any:
    """What stands for the default of a parameter: it is read as a global is."""
    traced = isinstance(value, TracedArray)
    return value if traced else replaced(value, f"default {of}", scope, later)


def _nth(function: types.FunctionType, number: int) -> Any:
    return dict(enumerate(function.__defaults__ or ())).get(number)


def _named(function: types.FunctionType, name: str) -> Any:
    return (function.__kwdefaults__ or {}).get(name)


def _cell(cell: types.CellType, name: str, scope: TracedGlobals) -> types.CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # not yet assigned
        return cell
    if id(value) in scope.begun:
        scope.capture(name, value, lambda: cell.cell_contents)
        return scope.begun[id(value)]
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
