"""Arrays of the caller whose elements lie far apart are copied. What of such a copy is written, or returned
as a view, has to be a view exactly where NumPy has one of the array: where two dimensions of it cannot be
joined to one, or its elements are no run, the copy has gaps."""

from __future__ import annotations

import numpy as np

from irkit.driver.programs.memory import Place, spanned
from irkit.frontends.numpy.records import View
from irkit.frontends.numpy.trace import ArraySpec, BufferSpec
from irkit.weights import Array


class GapsNeededError(BaseException):
    """A copy without gaps was written or returned: the function is to be traced anew with gaps. Not an error
    of the user's, whose `except` must not see it."""


def with_gaps(
    number: int, array: Array, pairs: bool, buffer: int
) -> tuple[Place, BufferSpec, ArraySpec]:
    """The copy of array `number`, no two elements of which are one. `pairs`: its last dimension is the parts
    of complex numbers, which lie side by side."""
    wide = [d for d in range(array.ndim) if array.shape[d] > 1]
    inner_first = sorted(wide, key=lambda d: (abs(array.strides[d]), -d))
    steps = [1] * array.ndim
    step, shape, run = 1, list[int](), array.itemsize
    for n, axis in enumerate(inner_first):
        stride = array.strides[axis]
        joined = stride == run if n else abs(stride) == run
        size = 1 if n == 0 else array.shape[inner_first[n - 1]]
        if not joined:
            # A gap behind a pair keeps pairs at places of their size.
            size += 2 if pairs and n == 1 else 1
        shape.append(size)
        step *= size
        steps[axis] = step if stride > 0 else -step
        run = stride * array.shape[axis]
    shape.append(array.shape[inner_first[-1]] if inner_first else 1)
    offset = sum((n - 1) * -s for n, s in zip(array.shape, steps, strict=True) if s < 0)
    whole, strides = tuple(reversed(shape)), tuple(steps)
    spec = ArraySpec(buffer, offset, array.shape, strides, array.flags.writeable, apart=True)
    place = Place("apart", number, low=offset, shape=whole, strides=strides)
    return place, BufferSpec(whole, array.dtype), spec


def view_of_caller(place: Place, view: View, array: Array) -> Array:
    """The view of the caller's array that `view` of its copy stands for."""
    if 0 in view.sizes:
        return np.empty(view.sizes, array.dtype)
    first = view.offset.now
    start = _byte(place, array, first)
    strides = tuple(
        _byte(place, array, first + s) - start if n > 1 else array.itemsize
        for n, s in zip(view.sizes, view.strides, strict=True)
    )
    one = spanned(array, start, 1)
    return np.lib.stride_tricks.as_strided(one, view.sizes, strides, writeable=one.flags.writeable)


def _byte(place: Place, array: Array, element: int) -> int:
    """How many bytes after the array's first element that lies which is `element` of its copy."""
    found, rest = 0, element
    outer_first = sorted(range(array.ndim), key=lambda d: -abs(place.strides[d]))
    for axis in (d for d in outer_first if array.shape[d] > 1):
        count, rest = divmod(rest, abs(place.strides[axis]))
        index = count if place.strides[axis] > 0 else array.shape[axis] - 1 - count
        found += index * array.strides[axis]
    return found
