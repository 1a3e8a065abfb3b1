"""NumPy's functions that are given lists of a trace's numbers, as in `np.mean([x[0], x[1]])`.

NumPy asks arrays that are arguments who computes with them, and looks into no list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.arrays import is_above
from irkit.frontends.numpy.host_calls import has_traced
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import traced_list
from irkit.frontends.numpy.recorder import tracing

DISPATCHED: Any = LIBRARY.sum.__class__
"""The class of NumPy's functions that ask their arguments."""


class _StandIn:
    """A function of NumPy; it passes for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        return self.__wrapped__ == getattr(other, "__wrapped__", other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class _Function(_StandIn):
    """A function that is no universal one: which of its lists are arrays, and which are several, it knows."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from irkit.frontends.numpy.functions import function_call

        given = (*args, *kwargs.values())
        if _has_list(given) and tracing() and all(map(_is_plain, given)) and has_traced(given):
            return function_call(self.__wrapped__, args, kwargs)
        return self.__wrapped__(*args, **kwargs)


class _Universal(_StandIn):
    """A universal function, or a method of one: each list is an array."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not tracing():
            return self.__wrapped__(*args, **kwargs)
        if "where" in kwargs:
            kwargs["where"] = _as_array(kwargs["where"])
        # A tuple of indices, which `at` has second, is none of numbers.
        plain = 1 if self.__name__ == "at" else len(args)
        given = [a if n == plain else _as_array(a) for n, a in enumerate(args)]
        return self.__wrapped__(*given, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__wrapped__, name)
        return _Universal(found) if name in METHODS else found


METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")


def taking_lists(function: Any) -> Any:
    """What stands for a function of NumPy's, or a universal function of anyone's: one object each. Others are
    as they are."""
    return _stand_in(function) if isinstance(function, np.ufunc | DISPATCHED) else function


@cache
def _stand_in(function: Any) -> _StandIn:
    return _Universal(function) if isinstance(function, np.ufunc) else _Function(function)


def _has_list(given: Sequence[Any]) -> bool:
    return any(isinstance(value, list | tuple) for value in given)


def _is_plain(given: Any) -> bool:
    """Whether there is nothing in it that takes calls to itself: arrays of other shapes, series, frames."""
    if isinstance(given, list | tuple):
        return all(map(_is_plain, cast("list[Any]", given)))
    return not is_above(cast(Any, type(given)))


def _as_array(given: Any) -> Any:
    """A list in which something is traced as an array; all else as it is."""
    if not isinstance(given, list | tuple):
        return given
    found = traced_list(cast("list[Any]", given))
    return cast(Any, given) if found is None else found
