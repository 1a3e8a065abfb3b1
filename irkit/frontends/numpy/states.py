"""What a value is now, as plain data that can be compared with what it is later.

A traced function keeps the numbers that it has read of globals, enclosing functions, defaults and objects.
Each call asks whether they still are what they were, to the elements of lists and the attributes of objects:
what is the same object may have other contents. Objects of libraries that say nothing of themselves are told
apart by identity.
"""

from __future__ import annotations

import collections
import functools
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from irkit.annotations.structures import of_kind
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.objects import is_booster, is_estimator

MOST = 200_000
"""Values that may be looked at for one that was read."""
FEW = 200
"""Those of an object of a library: of one that has more nothing but its identity is looked at."""
PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype, range, slice)
NAMELESS = ("builtins", "__builtin__")


def state_of(value: Any, name: str = "") -> Any:
    """The contents of a value. Raises UnsupportedError for one that has more than can be looked at."""
    try:
        return _State(MOST).of(value)
    except _TooMuchError:
        raise UnsupportedError(
            f"'{name}' has more than {MOST} values that a compiled function may read, and that have to be "
            "looked at in every call: pass what it needs"
        ) from None


class _TooMuchError(Exception):
    pass


class _State:
    def __init__(self, most: int) -> None:
        self._left = most
        self._seen: dict[int, int] = {}

    def of(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _TooMuchError
        kind = cast(Any, type(value))
        if of_kind(value, *PLAIN) and not kind.__module__.startswith("irkit"):
            return (kind, repr(value))
        if id(value) in self._seen:
            return ("seen", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        if kind.__module__.partition(".")[0] == "irkit" or is_estimator(value) or is_booster(value):
            return ("itself", id(value))
        return self._contents(value, kind)

    def _contents(self, value: Any, kind: Any) -> Any:
        if of_kind(value, dict):
            return (kind, *((self.of(k), self.of(v)) for k, v in list(value.items())))
        if of_kind(value, list, tuple, collections.deque):
            return (kind, *map(self.of, list(value)))
        if of_kind(value, set, frozenset):
            return (kind, *sorted(map(repr, value)))
        if of_kind(value, np.ndarray):
            plain = value.dtype.hasobject
            held = self.of(value.tolist()) if plain else value.tobytes()
            return (kind, str(value.dtype), value.shape, held)
        if of_kind(value, bytearray, memoryview):
            return (kind, bytes(value))
        return self._code(value) if callable(value) else self._object(value, kind)

    def _code(self, value: Any) -> Any:
        """Of functions and classes of the user's own: what they read."""
        if of_kind(value, types.MethodType):
            return ("method", self.of(value.__self__), self.of(value.__func__))
        if of_kind(value, functools.partial):
            return ("partial", *map(self.of, (value.func, value.args, value.keywords)))
        if of_kind(value, staticmethod, classmethod):
            return self.of(value.__func__)
        if of_kind(value, type) and not of_library(value):
            held: dict[str, Any] = dict(value.__dict__)
            own = [(n, v) for n, v in held.items() if not n.startswith("__")]
            mro: tuple[Any, ...] = value.__mro__
            bases = [b for b in mro[1:] if not of_library(b)]
            return ("class", id(value), *((n, self.of(v)) for n, v in own), *map(self.of, bases))
        if of_kind(value, types.FunctionType) and not of_library(value):
            return self._function(value)
        if not of_kind(value, type) and not of_library(type(value)):
            return self._object(value, type(value))
        return ("itself", id(value))

    def _function(self, function: types.FunctionType) -> Any:
        read = sorted({n for n in _names(function.__code__) if n in function.__globals__})
        return (
            "function",
            id(function.__code__),
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            *(self.of(_cell(c)) for c in function.__closure__ or ()),
            *((n, self.of(function.__globals__[n])) for n in read),
        )

    def _object(self, value: Any, kind: Any) -> Any:
        """By its attributes."""
        held: dict[str, Any] = dict(getattr(value, "__dict__", None) or {})
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for slot in (slots,) if of_kind(slots, str) else slots:
                if hasattr(value, slot):
                    held[slot] = getattr(value, slot)
        if of_kind(value, types.ModuleType, property):
            return ("itself", id(value))
        if not of_library(kind):
            return ("object", id(value), self.of(kind), self.of(held))
        if not held:
            return ("itself", id(value))
        try:
            return ("object", id(value), _State(min(FEW, self._left)).of(held))
        except _TooMuchError:
            return ("itself", id(value))


def _names(code: types.CodeType) -> Iterator[str]:
    """What code may read of its globals."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def of_library(value: Any) -> bool:
    """Whether a module, function or class is of an installed package or of Python's own, which nobody
    changes."""
    if isinstance(value, types.ModuleType):
        return _is_library(value.__name__)
    return _is_library(str(getattr(value, "__module__", None) or "builtins"))


@functools.cache
def _is_library(module: str) -> bool:
    if module in NAMELESS:
        return True
    if module == "__main__":
        return False
    root = module.partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None)
    if root in ("irkit", "numpy") or file is None:
        return True
    path = Path(cast(str, file))
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(installed) or path.is_relative_to(sysconfig.get_paths()["stdlib"])
