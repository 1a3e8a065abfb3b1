"""`np.piecewise`: each function is called with what its condition picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.arrays import is_traced
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """An array like `x` with a function's values, or a number, where each condition holds; of those that
    hold in one place the last counts. One function more than conditions is for where none holds. NumPy does
    not call a function for which nothing is picked; here it is, and one that has no value of nothing, as the
    largest has none, raises its error.

    Raises ValueError for other numbers of functions.
    """
    array = array_of(x)
    conditions = _conditions(array, condlist)
    count, functions = len(conditions), len(funclist)
    if count == functions - 1:
        some: Any = LIBRARY.any(LIBRARY.stack(conditions), axis=0)
        conditions.append(~some)
    elif count != functions:
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected"
        )
    made = LIBRARY.zeros_like(array)
    for condition, function in zip(conditions, funclist, strict=True):
        if callable(function):
            own = cast("Callable[..., Any]", function)
            made[condition] = own(array[condition], *args, **kw)
        else:
            made[condition] = function
    return made


def _conditions(array: Any, given: Any) -> list[Any]:
    """Truths for each function; of one condition alone NumPy takes no list."""
    listed = isinstance(given, list | tuple)
    number = not listed and np.ndim(given) == 0
    alone = number or (array.ndim != 0 and not _is_array(given[0]))
    conditions: list[Any] = [given] if alone else list(cast("Sequence[Any]", given))
    return [array_of(c).astype(bool) for c in conditions]


def _is_array(value: Any) -> bool:
    return not value.spot.scalar if is_traced(value) else isinstance(value, list | np.ndarray)
