"""What a function that Numba compiles for the host (`njit`) does to its arrays: inferred like a kernel's."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final
from weakref import WeakKeyDictionary

from irkit.dags.inference.memory_values import NOWHERE
from irkit.dags.inference.numba_effects import Effects, effects_of

_EFFECTS: Final[WeakKeyDictionary[Any, dict[Any, Effects | None]]] = WeakKeyDictionary()
"""What was inferred, by function and types of its arguments."""


def host_effects(function: Any, arguments: Sequence[Any]) -> Effects | None:
    """What a function does to these arguments; None where that cannot be told: it is none of Numba's, Numba
    does not take these arguments, its code is not kept, or it writes through other addresses."""
    if type(function).__name__ != "CPUDispatcher":
        return None
    numba: Any = import_module("numba")
    errors: Any = import_module("numba.core.errors")
    try:
        types = tuple(numba.typeof(argument) for argument in arguments)
    except (errors.NumbaError, ValueError):
        return None
    known = _EFFECTS.setdefault(function, {})
    if types not in known:
        known[types] = _inferred(function, types)
    return known[types]


def _inferred(function: Any, types: tuple[Any, ...]) -> Effects | None:
    errors: Any = import_module("numba.core.errors")
    try:
        function.compile(types)
    except (errors.NumbaError, errors.UnsupportedBytecodeError):
        return None
    code = getattr(function.overloads.get(types), "type_annotation", None)
    if code is None or not hasattr(code, "blocks"):
        return None
    effects = effects_of(code, types)
    return None if NOWHERE in effects.writes or effects.captured else effects
