"""The arguments of a call: which arrays there are, and what is no array."""

from __future__ import annotations

import types
from collections.abc import Hashable, Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.structures import rebuilt
from irkit.dialects.types import element_type
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.objects import is_estimator
from irkit.frontends.numpy.trace import Leaf
from irkit.weights import Array

PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype)
BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


class Flattened:
    """Arguments as a structure with leaves, the arrays in these, and a key of all that is no array."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any], names: Sequence[str]) -> None:
        self.arrays: list[Array] = []
        self.names: list[str] = []
        keys: list[Hashable] = []
        parts: list[Any] = []
        for number, value in enumerate(args):
            name = names[number] if number < len(names) else f"argument {number}"
            parts.append(self._part(value, name, keys))
        rest: dict[str, Any] = {}
        for name in sorted(kwargs):
            keys.append(name)
            rest[name] = self._part(kwargs[name], name, keys)
        self.structure: Any = (parts, rest)
        self.key = tuple(keys)

    def _part(self, value: Any, name: str, keys: list[Hashable]) -> Any:
        if type(value) is np.ndarray:
            keys.append("array")
            return self.leaf(value, name)
        if isinstance(value, PLAIN):
            # Of numbers that are equal, 1, 1.0 and True are not the same; nor are 0.0 and -0.0.
            keys.append((type(cast(object, value)), repr(cast(object, value))))
            return cast(object, value)
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value)
            keys.append(("dict", *map(repr, items)))
            return {k: self._part(v, f"{name}[{k!r}]", keys) for k, v in items.items()}
        if isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            keys.append((type(items), len(items)))
            parts = [self._part(v, f"{name}[{n}]", keys) for n, v in enumerate(items)]
            return rebuilt(items, parts)
        if isinstance(value, BY_IDENTITY) or is_estimator(value):
            keys.append(value)
            return cast(object, value)
        raise _unknown(name, value)

    def leaf(self, array: Array, name: str) -> Leaf:
        """One more array."""
        check_array(array, name)
        self.arrays.append(array)
        self.names.append(name)
        return Leaf(len(self.arrays) - 1)


def check_array(array: Array, name: str) -> None:
    """Raises UnsupportedError for an array of elements that irkit has no type for."""
    try:
        element_type(array.dtype)
    except KeyError:
        reason = {
            "c": "complex numbers are not supported",
            "O": "an array of objects has no numbers to compute with",
        }.get(array.dtype.kind, "irkit has no such type")
        if not array.dtype.isnative:
            reason = (
                "bytes in the order of another machine: array.astype(array.dtype.newbyteorder('='))"
            )
        raise UnsupportedError(f"argument '{name}': dtype {array.dtype}: {reason}") from None


def _unknown(name: str, value: Any) -> UnsupportedError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray):
        return UnsupportedError(
            f"argument '{name}': a {kind}, which computes otherwise than an array: pass numpy.asarray({name})"
        )
    if hasattr(value, "iloc") and hasattr(value, "to_numpy"):
        return UnsupportedError(
            f"argument '{name}': a {kind}, whose labels a compiled function would lose: pass "
            f"{name}.to_numpy()"
        )
    return UnsupportedError(
        f"argument '{name}' of type {kind}: expected arrays, numbers, text, None, functions, fitted "
        "estimators, and tuples, lists and dicts of them"
    )


def check_budget(budget: Any, what: str) -> int | None:
    """A budget of bytes, or None. Raises UnsupportedError for what is neither."""
    if budget is None or (isinstance(budget, int) and not isinstance(budget, bool) and budget > 0):
        return budget
    raise UnsupportedError(
        f"{what}: memory_budget = {budget!r}: expected a number of bytes, or None"
    )
