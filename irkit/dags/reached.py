"""Arrays that a Python function comes to beside its arguments: what it encloses, is bound to, or reads of
its module, and what is in dicts and attributes."""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, cast

from irkit.dags.located import Located, locate
from irkit.errors import InvalidInputError, UnsupportedError

MOST = 10_000
"""Values that are looked at for one call."""


def arrays_reached(name: str, function: Any, arguments: Any) -> Iterator[tuple[Any, Located]]:
    """The arrays of the host, each once. Raises UnsupportedError where there are too many values to see."""
    ahead: list[Any] = [function, arguments]
    seen: dict[int, Any] = {}
    while ahead:
        value = ahead.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if len(seen) > MOST:
            raise UnsupportedError(
                f"function '{name}' may come to more than {MOST} values, any of which may be an array: give "
                "it its arrays as arguments, and no objects that have others"
            )
        try:
            located = locate(value)
        except InvalidInputError:  # of Python objects, which nobody schedules
            continue
        if located is None:
            ahead += _inside(value)
        elif located.space == "host":
            yield value, located


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, (dict, list, tuple, set, frozenset, collections.deque)):
        held: Any = cast(Any, value)
        return [*cast("dict[Any, Any]", held).values()] if isinstance(value, dict) else [*held]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        return [value.__self__, *([value.__func__] if isinstance(value, types.MethodType) else [])]
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, (type, types.ModuleType)):
        return []
    if hasattr(value, "py_func"):  # one that Numba compiles
        return [value.py_func]
    return list(getattr(value, "__dict__", {}).values())


def _of_function(function: types.FunctionType) -> list[Any]:
    read = [function.__globals__.get(name) for name in _names(function.__code__)]
    cells = [c.cell_contents for c in function.__closure__ or () if _is_set(c)]
    # Functions of other modules are not entered.
    near = [
        v
        for v in read
        if not isinstance(v, types.FunctionType) or v.__module__ == function.__module__
    ]
    return [*near, *cells, function.__defaults__, function.__kwdefaults__]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_set(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
