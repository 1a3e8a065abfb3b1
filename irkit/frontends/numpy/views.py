"""Views that NumPy makes of an array's memory: other bits of it, windows, parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.arrays import TracedArray, fresh, value_of
from irkit.frontends.numpy.operands import array_of, operand
from irkit.frontends.numpy.picks import BITS, Pick
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.spots import address
from irkit.weights import Array


def view(x: TracedArray, dtype: Any = None) -> TracedArray:
    """`x.view()`: of the same dtype, of complex numbers as their parts or of parts as complex numbers; of
    integers as those of the same size, signed or not, and of truths as bytes, a copy.

    Raises UnsupportedError for other bits, unless elements are known; NumPy's ValueError.
    """
    if dtype is np.ndarray:
        dtype = None
    layout, to = x.spot.layout, x.dtype if dtype is None else np.dtype(dtype)
    if to == x.dtype or _of_parts(x.dtype, to):
        return TracedArray(x.spot.viewed(layout.view(to)))
    if _of_parts(to, x.dtype) and not x.spot.buffer.apart:
        return TracedArray(x.spot.viewed(layout.view(to)))
    if x.spot.known is None and not _is_integer_of(x.dtype, to):
        raise refused(
            f"ndarray.view of {x.dtype} as {to}: views have the same dtype, parts of complex numbers, or, as "
            "copies, integers of the same size; astype converts numbers"
        )
    return _copied_bits(x, to)


def _of_parts(one: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether `to` is that of the parts of complex numbers of a dtype."""
    return one.kind == "c" and to.kind == "f" and 2 * to.itemsize == one.itemsize


def _is_integer_of(one: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether conversion to a dtype of integers keeps all bits."""
    return to.itemsize == one.itemsize and one.kind in "iub" and to.kind in "iu"


def _copied_bits(x: TracedArray, to: np.dtype[Any]) -> TracedArray:
    """A copy where NumPy has a view: whoever could tell one from the other is refused."""
    contents = x.spot.known
    if contents is None:
        made = fresh(recorder().cast(value_of(x), to), scalar=x.spot.scalar)
    else:
        bits = contents.copy().view(to)
        made = fresh(recorder().constant(bits), scalar=x.spot.scalar)
        made.spot.buffer.known = bits
    if not x.spot.scalar:
        made.spot.buffer.pick = Pick((to,), BITS)
        x.spot.buffer.picks.append(made.spot.buffer.pick)
    return made


def sliding_window_view(x: Any, *args: Any, writeable: bool = False, **kwargs: Any) -> TracedArray:
    """`np.lib.stride_tricks.sliding_window_view`: a view, which cannot be written."""
    if writeable:
        raise refused("sliding_window_view that is written: its elements share memory")
    array = array_of(x)
    seen = np.lib.stride_tricks.sliding_window_view(array.spot.layout, *args, **kwargs)
    return TracedArray(array.spot.viewed(seen))


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> TracedArray:
    """`np.lib.stride_tricks.as_strided`: a view, which can be written where no two elements of it are one.

    Raises UnsupportedError for elements outside of the array's memory, which NumPy reads, and of an argument
    that does not have its memory for itself.
    """
    array = array_of(x)
    spot, layout = array.spot, array.spot.layout
    if spot.terms or spot.buffer.apart:
        raise refused(
            "as_strided of an argument with gaps between its elements, or that overlaps another, or of a "
            "part at a loop's index: as_strided of a copy of it"
        )
    sizes = layout.shape if shape is None else _numbers(shape)
    steps = _steps(layout, sizes) if strides is None else _numbers(strides)
    if len(sizes) != len(steps):
        raise ValueError("strides, if given, must have the same length as shape")
    if 0 in sizes:
        return TracedArray(spot.viewed(np.empty(sizes, layout.dtype)))
    reach = [(n - 1) * s for n, s in zip(sizes, steps, strict=True)]
    start = (address(layout) - address(spot.buffer.base)) if layout.size else 0
    low = start + sum(r for r in reach if r < 0)
    high = start + sum(r for r in reach if r > 0) + layout.itemsize
    odd = any(s % layout.itemsize for s in steps)
    if odd or low < 0 or high > spot.buffer.base.nbytes:
        raise refused(
            f"as_strided of shape {sizes} with strides {steps}: elements outside of the array's memory, or "
            "parts of elements"
        )
    seen = np.lib.stride_tricks.as_strided(layout, sizes, steps, writeable=writeable)
    if writeable and _meet(sizes, steps, layout.itemsize):
        seen = _read_only(seen)
        spot.buffer.repeats = True
    return TracedArray(spot.viewed(seen))


def _numbers(given: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, given))


def _steps(layout: Array, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Strides where none are given: NumPy has none of an array in C order, so that they follow its shape."""
    if not layout.flags.c_contiguous:
        return layout.strides
    return tuple(layout.itemsize * math.prod(sizes[d + 1 :]) for d in range(len(sizes)))


def _meet(sizes: Sequence[int], steps: Sequence[int], size: int) -> bool:
    """Whether two elements may be one."""
    reached = 0
    for step, count in sorted(zip(map(abs, steps), sizes, strict=True)):
        if count > 1 and step < reached + size:
            return True
        reached += step * (count - 1)
    return False


def _read_only(seen: Array) -> Array:
    seen = seen[...]
    seen.flags.writeable = False
    return seen


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
