"""`np.roll`: by numbers that are known slices, by computed ones elements that are picked."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from irkit.frontends.numpy.arrays import is_traced
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved by `shift` along each axis, what falls off coming in again; without an axis, in C order.

    Raises ValueError and AxisError as NumPy.
    """
    from irkit.frontends.numpy.globals import traced_function

    if not _has_computed(shift):
        # NumPy's own Python makes slices of it.
        return traced_function(cast(Any, np.roll).__wrapped__)(a, _known(shift), axis)
    array = array_of(a)
    if axis is None:
        return LIBRARY.reshape(roll(LIBRARY.ravel(array), shift, 0), array.shape)
    axes = normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)
    shifts = _each(shift)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(
            f"shape mismatch: {len(shifts)} shifts and {len(axes)} axes cannot be broadcast to a single shape"
        )
    for number in range(max(len(shifts), len(axes))):
        along, by = axes[number % len(axes)], shifts[number % len(shifts)]
        array = _rolled(array, by, along)
    return array if array is not a else LIBRARY.copy(array)


def _has_computed(shift: Any) -> bool:
    parts = cast("tuple[Any, ...]", shift) if isinstance(shift, list | tuple) else (shift,)
    return any(is_traced(s) and s.spot.known is None for s in parts)


def _known(shift: Any) -> Any:
    """Numbers that NumPy may look at."""
    if isinstance(shift, list | tuple):
        return tuple(map(_known, cast("tuple[Any, ...]", shift)))
    return np.array(shift)[()] if is_traced(shift) else shift


def _each(shift: Any) -> list[Any]:
    """The shifts one by one."""
    if isinstance(shift, list | tuple):
        return list(cast("tuple[Any, ...]", shift))
    if shift.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    return [shift] if shift.ndim == 0 else [shift[n] for n in range(shift.shape[0])]


def _rolled(array: Any, by: Any, axis: int) -> Any:
    extent = array.shape[axis]
    if extent == 0:
        return array
    # As `int` has it, which NumPy calls for each shift.
    whole = by.astype(np.int64) if is_traced(by) else int(by)
    return LIBRARY.take(array, (LIBRARY.arange(extent) - whole) % extent, axis=axis)
