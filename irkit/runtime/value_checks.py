"""Whether all values of an array are such as a model takes: one pass, in compiled code.

What is not is looked at again by who says what is wrong with it. Compiled once for all programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from irkit.runtime.function_code import functions_of
from irkit.weights import Array

_NATIVE = '''"""Checks of the values of arrays, for all programs."""

from numba import float32, float64, int32, types

from irkit.runtime.intrinsics.cpu import float32p, float64p
from irkit.runtime.intrinsics.engine import njit

_PIECE = 4096


@njit(
    types.boolean(types.Array(float32, 2, "C", readonly=True), float32, types.boolean),
    nogil=True, cache=True, error_model="numpy",
)
def within_float32(x, most, nan):
    data, size = float32p(x.ctypes.data), x.size
    for start in range(0, size, _PIECE):
        beyond, missing = int32(0), int32(0)
        for i in range(start, min(start + _PIECE, size)):
            beyond |= int32(abs(data[i]) > most)
            missing |= int32(data[i] != data[i])
        if beyond or (missing and not nan):
            return False
    return True


@njit(
    types.boolean(types.Array(float64, 2, "C", readonly=True), float64, types.boolean),
    nogil=True, cache=True, error_model="numpy",
)
def within_float64(x, most, nan):
    data, size = float64p(x.ctypes.data), x.size
    for start in range(0, size, _PIECE):
        beyond, missing = 0, 0
        for i in range(start, min(start + _PIECE, size)):
            beyond |= abs(data[i]) > most
            missing |= data[i] != data[i]
        if beyond or (missing and not nan):
            return False
    return True


@njit(
    types.boolean(
        types.Array(float64, 2, "C", readonly=True), types.Array(float32, 2, "C"),
        float32, types.boolean,
    ),
    nogil=True, cache=True, error_model="numpy",
)
def narrow(x, y, most, nan):
    data, made, size = float64p(x.ctypes.data), float32p(y.ctypes.data), x.size
    for start in range(0, size, _PIECE):
        beyond, missing = int32(0), int32(0)
        for i in range(start, min(start + _PIECE, size)):
            value = float32(data[i])
            made[i] = value
            beyond |= int32(abs(value) > most)
            missing |= int32(value != value)
        if beyond or (missing and not nan):
            return False
    return True
'''


class _Native(NamedTuple):
    within_float32: Callable[[Array, float, bool], bool]
    within_float64: Callable[[Array, float, bool], bool]
    narrow: Callable[[Array, Array, float, bool], bool]


@functools.cache
def _native() -> _Native:
    return _Native(**functions_of(_NATIVE).called)


class ValueCheck:
    """Whether values of a dtype, float32 or float64, are at most `most` in size, and NaN only where `nan`."""

    def __init__(self, dtype: np.dtype[Any], most: float, nan: bool) -> None:
        self.dtype, self.nan = dtype, nan
        self.most = _at_most(dtype, most)

    def holds(self, array: Array) -> bool:
        """Of an array of this dtype, C-contiguous and aligned."""
        table = array if array.ndim == 2 else array.reshape(1, -1)
        return self.of_table(table)

    @functools.cached_property
    def of_table(self) -> Callable[[Array], bool]:
        """`holds`, of an array of two dimensions."""
        native, most, nan = _native(), self.most, self.nan
        within = native.within_float32 if self.dtype == np.float32 else native.within_float64
        return lambda table: within(table, most, nan)

    @functools.cached_property
    def narrowed(self) -> Callable[[Array, Array], bool]:
        """Round float64 to float32, from one C-contiguous array of two dimensions to another as large, and
        say whether the check holds of it; if it does not, not all may be there."""
        narrow, most, nan = _native().narrow, self.most, self.nan
        return lambda table, made: narrow(table, made, most, nan)


def _at_most(dtype: np.dtype[Any], most: float) -> float:
    """The largest number of a dtype that is no larger."""
    with np.errstate(over="ignore"):
        rounded = dtype.type(most)
    if float(rounded) > most:
        rounded = np.nextafter(rounded, dtype.type(-np.inf))
    return float(rounded)
