"""Views that NumPy makes of an array's memory: other bits of it, windows, parts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.operands import array_of, operand
from irkit.frontends.numpy.places import refused


def view(x: TracedArray, dtype: Any = None) -> TracedArray:
    """`x.view()`: of the same dtype, or of the parts of complex numbers as numbers. Raises UnsupportedError
    for other bits."""
    if dtype is np.ndarray:
        dtype = None
    layout, to = x.spot.layout, x.dtype if dtype is None else np.dtype(dtype)
    real = x.dtype.kind == "c" and to == x.real.dtype
    if to != x.dtype and not real:
        raise refused(f"ndarray.view of {x.dtype} as {to}: astype converts numbers")
    return TracedArray(x.spot.viewed(layout.view(to)))


def sliding_window_view(x: Any, *args: Any, writeable: bool = False, **kwargs: Any) -> TracedArray:
    """`np.lib.stride_tricks.sliding_window_view`: a view, which cannot be written."""
    if writeable:
        raise refused("sliding_window_view that is written: its elements share memory")
    array = array_of(x)
    seen = np.lib.stride_tricks.sliding_window_view(array.spot.layout, *args, **kwargs)
    return TracedArray(array.spot.viewed(seen))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[TracedArray]:
    """`np.array_split`: views, of extents that differ by 1 at most. Raises NumPy's errors, and
    UnsupportedError for indices that are computed."""
    array = array_of(ary)
    shadow, given = array.spot.layout, operand(indices_or_sections)
    if given.known is None:
        raise refused("parts of an array, split at indices that are computed")
    parts = np.array_split(shadow, cast(Any, given.known), axis)
    return [TracedArray(array.spot.viewed(part)) for part in parts]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[TracedArray]:
    """`np.split`: parts of one extent, or between indices."""
    if operand(indices_or_sections).shape == ():
        known = operand(indices_or_sections).known
        if known is not None and array_of(ary).shape[axis] % int(known):
            raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)
