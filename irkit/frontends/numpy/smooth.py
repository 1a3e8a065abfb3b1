"""Functions of NumPy whose own formula has no derivative at places where they have one: what is traced of
them where it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of

_NEAR = 0.5
_TERMS = 9
"""Of the series of sin(y) / y: up to 0.5 the next one, and its slopes, are below what a float64 holds."""


def norm(
    plain: Callable[..., Any], x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False
) -> Any:
    """`np.linalg.norm` where it is differentiated, `plain` being its own formula: of zeros alone the
    derivative is 0, not that of a root, as for `np.std`."""
    array = array_of(x)
    number = isinstance(ord, int | float | np.number) and 0 < ord < np.inf
    if ord not in (None, "fro", "f") and not number:
        return plain(array, ord, axis, keepdims)
    nothing = LIBRARY.all(array == 0, axis=axis, keepdims=True)
    found = plain(LIBRARY.where(nothing, array.dtype.type(1), array), ord, axis, keepdims)
    none = LIBRARY.reshape(nothing, np.shape(found))
    return LIBRARY.where(none, array_of(found).dtype.type(0), found)[()]


def sinc(plain: Callable[..., Any], x: Any) -> Any:
    """`np.sinc`, near 0 by its series: NumPy divides a sine by a number that is a constant at 0, and beside
    that the quotient's derivatives are differences of numbers that are almost equal."""
    array = array_of(x)
    if array.dtype.kind != "f":
        return plain(x)
    y = array * array.dtype.type(np.pi)
    near = LIBRARY.absolute(y) < _NEAR
    square = LIBRARY.where(near, y, array.dtype.type(0)) ** 2
    series = array.dtype.type(0) * square
    for number in reversed(range(_TERMS)):
        series = series * square + array.dtype.type((-1) ** number / math.factorial(2 * number + 1))
    far = LIBRARY.where(near, array.dtype.type(1), y)
    return LIBRARY.where(near, series, LIBRARY.sin(far) / far)[()]


SMOOTH: Mapping[str, Callable[..., Any]] = {"norm": norm, "sinc": sinc}
"""By name: functions of NumPy's own formula, and of the arguments."""
