"""Digests of values and code, complete by construction: what a thing does depends on nothing else.

A function counts with its bytecode and text, its defaults, what its closure binds, and the globals that
it names; a class with its bases and everything in its body; a dataclass with all its fields; any other
object with what it would be pickled from. What belongs to irkit or to Python's library counts by name
alone: the cache key has irkit's sources and Python's version. An installed package counts by name and
version.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import pickle
import re
import sys
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

_OURS = frozenset({"irkit", *sys.stdlib_module_names})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
# Of a code object, all but where it stands in a file.
_CODE = (
    "co_code",
    "co_consts",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_flags",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_exceptiontable",
)


def fingerprint(thing: object) -> str:
    """Hex digest of `thing`, the same in every process.

    What cannot be described (an open file, say) has another one each time: a cached program is never taken
    for one that such a thing took part in.
    """
    h = hashlib.sha256()
    for part in _Description().of(thing):
        data = part.encode("utf-8", "surrogatepass")
        h.update(f"{len(data)}:".encode())
        h.update(data)
    return h.hexdigest()


class _Description:
    """The parts of a thing as text; what has been described before is named by its number."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, thing: object) -> Iterator[str]:
        """`thing`, after the name of its type; in brackets, so that no other nesting looks alike."""
        kind = cast("type[Any]", type(thing))
        yield f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(thing, _PLAIN):
            yield repr(thing)
            return
        if id(thing) in self._seen:
            yield f"as {self._seen[id(thing)]}"
            return
        yield "("
        self._seen[id(thing)] = len(self._seen)
        # Kept, so that no later object gets its id.
        self._kept.append(thing)
        for part in _rule(thing)(thing):
            yield from self.of(part)
        yield ")"


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
Rule = Callable[[Any], Iterator[object]]


def _rule(thing: object) -> Rule:
    """How to describe a thing: by the first kind of `_RULES` that it is of."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return _fields
    return next((rule for kinds, rule in _RULES if isinstance(thing, kinds)), _state)


def _fields(thing: Any) -> Iterator[object]:
    yield type(thing)
    for field in dataclasses.fields(thing):
        # What does not count where two are compared is a cache.
        if field.compare:
            yield field.name
            yield getattr(thing, field.name)


def _enumerator(thing: enum.Enum) -> Iterator[object]:
    yield type(thing)
    yield thing.name


def _scalar(number: np.generic[Any]) -> Iterator[object]:
    yield str(number.dtype)
    yield number.tobytes()


def _array(array: np.ndarray[Any, Any]) -> Iterator[object]:
    yield array.dtype.str
    yield array.shape
    yield from array.tolist() if array.dtype.hasobject else (array.tobytes(),)


def _mapping(thing: Mapping[Any, Any]) -> Iterator[object]:
    for key, value in thing.items():
        yield key
        yield value


def _unordered(thing: frozenset[Any]) -> Iterator[object]:
    yield from sorted(map(fingerprint, thing))


def _pattern(thing: re.Pattern[Any]) -> Iterator[object]:
    yield thing.pattern
    yield thing.flags


def _code(code: types.CodeType) -> Iterator[object]:
    for name in _CODE:
        yield getattr(code, name)


def _function(function: types.FunctionType) -> Iterator[object]:
    yield from _named(function)
    yield function.__code__
    yield function.__defaults__
    yield function.__kwdefaults__
    for cell in function.__closure__ or ():
        yield _content(cell)
    if _owner(function.__module__) == "own":
        yield _source(function)
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            yield name
            yield function.__globals__[name]


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _names(code: types.CodeType) -> set[str]:
    """Names that code and what is defined in it refer to."""
    inner = (_names(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*inner)


def _method(method: types.MethodType) -> Iterator[object]:
    yield method.__func__
    yield method.__self__


def _builtin(function: types.BuiltinFunctionType) -> Iterator[object]:
    yield from _named(function)
    if not isinstance(function.__self__, types.ModuleType | None):
        yield function.__self__


def _partial(thing: functools.partial[Any]) -> Iterator[object]:
    yield thing.func
    yield thing.args
    yield thing.keywords


def _class(made: type) -> Iterator[object]:
    yield from _named(made)
    if _owner(made.__module__) != "own":
        return
    yield made.__bases__
    yield _source(made)
    for name, value in sorted(vars(made).items()):
        if not _is_machinery(name, value):
            yield name
            yield value


def _is_machinery(name: str, value: object) -> bool:
    """What Python adds to a class by itself."""
    special = name.startswith("__") and name.endswith("__")
    kinds = (types.FunctionType, classmethod, staticmethod, property)
    return (special and not isinstance(value, kinds)) or name == "_abc_impl"


def _property(thing: property) -> Iterator[object]:
    yield from (thing.fget, thing.fset, thing.fdel)


def _wrapper(thing: Any) -> Iterator[object]:
    yield thing.__func__


def _module(module: types.ModuleType) -> Iterator[object]:
    yield _versioned(module.__name__)
    if _owner(module.__name__) != "own":
        return
    yield _text_of(module)
    # What it takes from modules beside it counts with those.
    for name, value in sorted(vars(module).items()):
        home = value if isinstance(value, types.ModuleType) else _home(value)
        if home is not None and home is not module and _owner(home.__name__) == "own":
            yield name
            yield home


def _home(value: object) -> types.ModuleType | None:
    if not isinstance(value, types.FunctionType | type):
        return None
    return sys.modules.get(value.__module__)


def _state(thing: object) -> Iterator[object]:
    """Any other object: its class, and what it would be pickled from."""
    yield type(thing)
    try:
        made_of = thing.__reduce_ex__(4)
    except (TypeError, AttributeError, ValueError, pickle.PicklingError):
        yield uuid.uuid4().hex
        return
    if isinstance(made_of, str):
        yield made_of
        return
    for part in made_of:
        # Iterators over the items of lists and mappings.
        yield list(cast("Iterator[object]", part)) if isinstance(part, Iterator) else part


def _named(thing: Any) -> Iterator[object]:
    yield _versioned(str(thing.__module__))
    yield thing.__qualname__


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):  # made at a prompt, or by a program
        return ""


def _text_of(module: types.ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return Path(file).read_text("utf-8", "replace") if file is not None else ""


@functools.cache
def _owner(name: str) -> str:
    """Whose a module is: "ours" (irkit or Python), "installed", or "own", somebody's own code."""
    root = name.partition(".")[0]
    if root in _OURS:
        return "ours"
    file = getattr(sys.modules.get(root), "__file__", None)
    installed = file is not None and not _INSTALLED.isdisjoint(Path(file).parts)
    return "installed" if installed else "own"


def _versioned(name: str) -> str:
    """A module's name, with its package's version if it is an installed one."""
    if _owner(name) != "installed":
        return name
    root = sys.modules[name.partition(".")[0]]
    return f"{name} {getattr(root, '__version__', '')}"


_RULES: tuple[tuple[tuple[type, ...] | type, Rule], ...] = (
    (enum.Enum, _enumerator),
    ((tuple, list), iter),
    ((set, frozenset), _unordered),
    (Mapping, _mapping),
    (np.ndarray, _array),
    (np.generic, _scalar),
    (re.Pattern, _pattern),
    (types.CodeType, _code),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    (types.BuiltinFunctionType, _builtin),
    (functools.partial, _partial),
    (type, _class),
    (types.ModuleType, _module),
    (property, _property),
    ((classmethod, staticmethod), _wrapper),
)
"""Kinds of things, and how each is taken apart; what is of none is described by its state."""
