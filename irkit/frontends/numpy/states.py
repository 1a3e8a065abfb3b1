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
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from irkit.annotations.structures import of_kind
from irkit.errors import UnsupportedError
from irkit.frontends.numpy import watches
from irkit.frontends.numpy.objects import is_booster, is_estimator

MOST = 200_000
"""Values that may be looked at for one that was read."""
FEW = 200
"""Those of an object of a library: of one that has more nothing but its identity is looked at."""
PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype, range, slice)
FIXED = (int, float, complex, str, bytes, bool, type(None), np.number, np.bool_, np.dtype, range)
"""What never is anything else than it was; an object of a class derived from one of Python's may be."""
NAMELESS = ("builtins", "__builtin__")


def state_of(value: Any, name: str = "") -> Any:
    """The contents of a value. Raises UnsupportedError for one that has more than can be looked at."""
    return _walked(value, name)[0]


def _walked(value: Any, name: str) -> tuple[Any, tuple[watches.Place, ...] | None]:
    """The contents of a value, and where they may change; None if it cannot be said of all of them."""
    walk = _State(MOST)
    try:
        state = walk.of(value)
    except _TooMuchError:
        raise UnsupportedError(
            f"'{name}' has more than {MOST} values that a compiled function may read, and that have to be "
            "looked at in every call: pass what it needs"
        ) from None
    return state, tuple(walk.places) if walk.is_watched else None


class Contents:
    """What a value was. Raises UnsupportedError for one that has more than can be looked at.

    As long as the places where it may change hold the same objects, it is not walked over again."""

    def __init__(self, value: Any, name: str) -> None:
        self._name = name
        self._state, places = _walked(value, name)
        # One attribute, as threads may find others while one of them walks.
        self._watch = (value, places)

    def are_of(self, value: Any) -> bool:
        """Whether a value is what this one was, to its contents."""
        root, places = self._watch
        if places is not None and watches.same_root(value, root) and watches.holds(places):
            return True
        state, places = _walked(value, self._name)
        same = state == self._state
        # What is there no more is not kept alive.
        self._watch = (value, places) if same else (None, None)
        return same


class _TooMuchError(Exception):
    pass


class _Same:
    """An object that another is compared with by identity. One that is gone is no other, even if that came to
    lie where it was."""

    __slots__ = ("_own",)

    def __init__(self, value: Any) -> None:
        try:
            self._own: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._own = lambda: value

    def __eq__(self, other: object) -> bool:
        own = self._own()
        return own is not None and isinstance(other, _Same) and other._own() is own

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class _State:
    def __init__(self, most: int) -> None:
        self._left = most
        self._seen: dict[int, int] = {}
        self.places: list[watches.Place] = []
        """Where what was met may change."""
        self.is_watched = True
        """Whether there are no others."""

    def of(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _TooMuchError
        kind = cast(Any, type(value))
        if of_kind(value, *PLAIN) and not kind.__module__.startswith("irkit"):
            self.is_watched &= of_kind(value, *FIXED) and of_library(kind) and not _renames(value)
            return (kind, repr(value))
        if id(value) in self._seen:
            return ("seen", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        if kind.__module__.partition(".")[0] == "irkit" or is_estimator(value) or is_booster(value):
            return ("itself", _Same(value))
        return self._contents(value, kind)

    def _contents(self, value: Any, kind: Any) -> Any:
        if of_kind(value, dict):
            self.is_watched &= of_library(kind)
            self.places.append(watches.items(value))
            return (kind, *self._items(value))
        if of_kind(value, list, tuple, collections.deque):
            self.is_watched &= of_library(kind)
            self.places += () if of_kind(value, tuple) else (watches.elements(value),)
            return (kind, *map(self.of, list(value)))
        if of_kind(value, set, frozenset):
            self.is_watched = False
            return (kind, *sorted(map(repr, value)))
        if of_kind(value, np.ndarray):
            objects = value.dtype.hasobject
            self.is_watched &= not (objects or _renames(value.dtype))
            if not objects:
                self.places.append(watches.contents(value))
            held = [*map(self.of, value.ravel())] if objects else value.tobytes()
            return (kind, str(value.dtype), value.shape, held)
        if of_kind(value, bytearray, memoryview):
            self.is_watched = False
            return (kind, bytes(value))
        return self._code(value) if callable(value) else self._object(value, kind)

    def _items(self, held: Any) -> tuple[Any, ...]:
        return tuple((self.of(k), self.of(v)) for k, v in list(held.items()))

    def _code(self, value: Any) -> Any:
        """Of functions and classes of the user's own: what they read."""
        if of_kind(value, types.MethodType):
            return ("method", self.of(value.__self__), self.of(value.__func__))
        if of_kind(value, functools.partial):
            self.is_watched = False
            return ("partial", *map(self.of, (value.func, value.args, value.keywords)))
        if of_kind(value, types.BuiltinMethodType) and not _is_of_module(value):
            # As other methods, it is made anew wherever it is asked for.
            self.is_watched = False
            return ("method", self.of(value.__self__), value.__name__)
        if of_kind(value, staticmethod, classmethod):
            return self.of(value.__func__)
        if of_kind(value, type) and not of_library(value):
            self.places += watches.of_class(value)
            held: dict[str, Any] = dict(value.__dict__)
            own = [(n, v) for n, v in held.items() if not n.startswith("__")]
            mro: tuple[Any, ...] = value.__mro__
            bases = [b for b in mro[1:] if not of_library(b)]
            return ("class", _Same(value), *((n, self.of(v)) for n, v in own), *map(self.of, bases))
        if of_kind(value, types.FunctionType) and not of_library(value):
            return self._function(value)
        if not of_kind(value, type) and not of_library(type(value)):
            return self._object(value, type(value))
        return ("itself", _Same(value))

    def _function(self, function: types.FunctionType) -> Any:
        names = _names(function.__code__)
        self.places.append(watches.of_function(function, names))
        read = [n for n in names if n in function.__globals__]
        return (
            "function",
            _Same(function.__code__),
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            *(self.of(watches.cell_contents(c)) for c in function.__closure__ or ()),
            *((n, self.of(function.__globals__[n])) for n in read),
        )

    def _object(self, value: Any, kind: Any) -> Any:
        """By its attributes."""
        slots = _slots(kind)
        held: dict[str, Any] = dict(getattr(value, "__dict__", None) or {})
        held |= {s: getattr(value, s) for s in slots if hasattr(value, s)}
        if of_kind(value, types.ModuleType, property):
            return ("itself", _Same(value))
        self.places += watches.attributes(value, slots)
        if not of_library(kind):
            return ("object", _Same(value), self.of(kind), *self._items(held))
        if not held:
            return ("itself", _Same(value))
        inner = _State(min(FEW, self._left))
        try:
            state = ("object", _Same(value), *inner._items(held))
        except _TooMuchError:
            # Some of it may go, and then it has few enough.
            self.is_watched = False
            return ("itself", _Same(value))
        self.places += inner.places
        self.is_watched &= inner.is_watched
        return state


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """What code may read of its globals, in order."""
    inner = (n for c in code.co_consts if isinstance(c, types.CodeType) for n in _names(c))
    return tuple(sorted({*code.co_names, *inner}))


def _slots(kind: type) -> tuple[str, ...]:
    """The names of attributes that objects of a type have outside of their dictionaries."""
    found: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        found += (own,) if of_kind(own, str) else own
    return tuple(found)


def _renames(value: Any) -> bool:
    """Whether a dtype has fields, whose names may be changed."""
    return of_kind(value, np.dtype) and value.names is not None


def _is_of_module(function: Any) -> bool:
    """Whether a function of C's is no method of an object, or one of a class."""
    return function.__self__ is None or of_kind(function.__self__, types.ModuleType, type)


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
