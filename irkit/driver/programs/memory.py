"""Arrays of the caller as buffers: memory that lies in one piece, and where in it each array is.

Arrays that overlap are views of one buffer. Of an array whose axes lie in another order the buffer has them
in that order. What lies far apart is copied to a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.trace import ArraySpec, BufferSpec
from irkit.weights import Array

SPARSE = 2
"""How many times more elements than an array the memory that it spans may have, to be a buffer."""


@dataclass(frozen=True)
class Place:
    """How a buffer is made of arrays. `dense`: the memory of array `first`, its axes in the order `axes`,
    those of `flipped` from their ends. `span`: so many elements from `low` bytes after its first one. `copy`:
    a copy, all of it side by side. `apart`: a copy with gaps (`apart.py`), in which the array begins at
    element `low` and has `strides`. `empty`: the array has no elements; the buffer has zeros, `shape`, which
    nothing reads or writes."""

    kind: str
    first: int
    axes: tuple[int, ...] = ()
    flipped: tuple[int, ...] = ()
    low: int = 0
    elements: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    def seen(self, buffer: Array, sizes: tuple[int, ...]) -> Array:
        """What of a copy with gaps is the array's."""
        steps = tuple(s * buffer.itemsize for s in self.strides)
        return strided(buffer, self.low, sizes, steps)

    def buffer(self, arrays: Sequence[Array]) -> Array:
        """The buffer, C-contiguous; the caller's memory unless it is a copy."""
        array = arrays[self.first]
        if self.kind == "dense":
            turned = np.transpose(array, self.axes)
            if not self.flipped:
                return turned
            back, whole = slice(None, None, -1), slice(None)
            keys = tuple(back if d in self.flipped else whole for d in range(turned.ndim))
            return turned[keys]
        if self.kind == "copy":
            return np.array(array, order="C")
        if self.kind == "empty":
            return np.zeros(self.shape, array.dtype)
        if self.kind == "apart":
            made = np.zeros(self.shape, array.dtype)
            self.seen(made, array.shape)[...] = array
            return made
        return spanned(array, self.low, self.elements)


def strided(whole: Array, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A view of a C-contiguous array, from element `offset` on."""
    if sizes == whole.shape and strides == whole.strides:
        return whole
    if 0 in sizes:
        return np.empty(sizes, whole.dtype)
    flat = whole.reshape(-1)
    return np.lib.stride_tricks.as_strided(flat[offset:], sizes, strides)


def spanned(array: Array, low: int, elements: int) -> Array:
    """Elements in a row of the memory that an array sees, from `low` bytes after its first one."""
    corner = array[(slice(0, 1),) * array.ndim]
    start = np.lib.stride_tricks.as_strided(corner.reshape(-1)[:1], (1,), (array.itemsize,))
    interface = {
        **start.__array_interface__,
        "data": (start.__array_interface__["data"][0] + low, not array.flags.writeable),
        "shape": (elements,),
        "strides": None,
    }
    return np.asarray(Memory(interface, array))


class Memory:
    """Memory for NumPy to look at; keeps alive what owns it."""

    def __init__(self, interface: dict[str, Any], owner: Array) -> None:
        self.__array_interface__ = interface
        self.owner = owner


@dataclass(frozen=True)
class Layout:
    """Where all arrays of a call are."""

    places: tuple[Place, ...]
    buffers: tuple[BufferSpec, ...]
    arrays: tuple[ArraySpec, ...]
    has_gaps: bool = False
    """Whether copies have gaps where the arrays have some."""


def bounds(array: Array) -> tuple[int, int]:
    """The bytes that an array lies in: its lowest address, and the one behind its highest."""
    start = cast(int, array.__array_interface__["data"][0])
    if array.flags.c_contiguous:
        return start, start + array.nbytes
    low = high = start
    for size, stride in zip(array.shape, array.strides, strict=True):
        if size == 0:
            return start, start
        low, high = low + min(0, (size - 1) * stride), high + max(0, (size - 1) * stride)
    return low, high + array.itemsize


def overlaps(arrays: Sequence[Array]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Groups of arrays that share memory: their numbers, and how many bytes after the first each begins."""
    if len(arrays) < 2 or _own_each(arrays):
        return ()
    spans = sorted((*bounds(a), n) for n, a in enumerate(arrays) if a.size)
    groups: list[tuple[tuple[int, int], ...]] = []
    group: list[int] = []
    end = 0
    for low, high, number in spans:
        if low >= end:
            groups += _group(group, arrays)
            group = []
        group.append(number)
        end = max(end, high)
    return tuple(groups + _group(group, arrays))


def _own_each(arrays: Sequence[Array]) -> bool:
    """Whether each array has memory of its own, which it gives back, and none is there twice: so most are,
    and where they lie need not be asked."""
    return all(a.flags.owndata for a in arrays) and len(set(map(id, arrays))) == len(arrays)


def _group(group: list[int], arrays: Sequence[Array]) -> list[tuple[tuple[int, int], ...]]:
    if len(group) < 2:
        return []
    own = sorted(group)
    starts = [cast(int, arrays[n].__array_interface__["data"][0]) for n in own]
    return [tuple((n, s - starts[0]) for n, s in zip(own, starts, strict=True))]


def layout_of(
    arrays: Sequence[Array],
    names: Sequence[str],
    is_complex: Sequence[bool],
    gaps: Callable[[int, Array, bool, int], tuple[Place, BufferSpec, ArraySpec]] | None = None,
) -> Layout:
    """Buffers for arrays, those of complex numbers as their parts. `gaps`: what makes copies with gaps, if
    copies are to have some.

    Raises UnsupportedError for arrays that overlap in a way that has no form.
    """
    groups = {n: g for g in overlaps(arrays) for n, _ in g}
    places: list[Place] = []
    buffers: list[BufferSpec] = []
    specs: dict[int, ArraySpec] = {}
    for number, array in enumerate(arrays):
        if number in specs:
            continue
        group = groups.get(number)
        if group is None:
            place, buffer, spec = _alone(number, array, len(buffers))
            if place.kind == "copy" and gaps is not None and not _repeats(array):
                place, buffer, spec = gaps(number, array, is_complex[number], len(buffers))
            specs[number] = spec
        else:
            place, buffer = _together(group, arrays, names, specs, len(buffers))
        places.append(place)
        buffers.append(buffer)
    ordered = tuple(replace(specs[n], is_complex=is_complex[n]) for n in range(len(arrays)))
    return Layout(tuple(places), tuple(buffers), ordered, gaps is not None)


def _alone(number: int, array: Array, buffer: int) -> tuple[Place, BufferSpec, ArraySpec]:
    if array.size == 0:
        return _empty(number, array, buffer)
    dense = _dense(number, array)
    if dense is not None:
        shape = tuple(array.shape[a] for a in dense.axes)
        strides = tuple(s // array.itemsize for s in array.strides)
        offset = sum((n - 1) * -s for n, s in zip(array.shape, strides, strict=True) if s < 0)
        spec = ArraySpec(buffer, offset, array.shape, strides, array.flags.writeable)
        return dense, BufferSpec(shape, array.dtype), spec
    low, high = bounds(array)
    elements = (high - low) // array.itemsize
    whole = all(s % array.itemsize == 0 for s in array.strides) and array.flags.aligned
    if whole and elements <= SPARSE * array.size and not _repeats(array):
        start = low - cast(int, array.__array_interface__["data"][0])
        place = Place("span", number, low=start, elements=elements)
        spec = _spanned_spec(array, buffer, low)
        return place, BufferSpec((elements,), array.dtype), spec
    row_major = np.empty(array.shape, array.dtype).strides
    strides = tuple(s // array.itemsize for s in row_major)
    spec = replace(_written_spec(array, buffer, 0, strides), apart=True)
    return Place("copy", number), BufferSpec(array.shape, array.dtype), spec


def _empty(number: int, array: Array, buffer: int) -> tuple[Place, BufferSpec, ArraySpec]:
    """A buffer of a pair of numbers, as no schedule has one of none, and complex numbers have parts."""
    shape, strides = (2,), tuple(s // array.itemsize for s in array.strides)
    spec = ArraySpec(buffer, 0, array.shape, strides, array.flags.writeable)
    return Place("empty", number, shape=shape), BufferSpec(shape, array.dtype), spec


def _dense(number: int, array: Array) -> Place | None:
    """The place of an array whose elements lie side by side, in some order of its axes."""
    if not array.flags.aligned:
        return None
    axes = tuple(sorted(range(array.ndim), key=lambda d: (-abs(array.strides[d]), d)))
    if array.flags.c_contiguous:
        return Place("dense", number, tuple(range(array.ndim)))
    want = array.itemsize
    for axis in reversed(axes):
        if array.shape[axis] != 1 and abs(array.strides[axis]) != want:
            return None
        want *= array.shape[axis]
    flipped = tuple(n for n, a in enumerate(axes) if array.strides[a] < 0)
    if any(array.shape[axes[n]] == 1 for n in flipped):
        return None
    return Place("dense", number, axes, flipped)


def _repeats(array: Array) -> bool:
    """Whether two elements may be one in memory."""
    reached = 0
    for stride, size in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if size > 1:
            if stride <= reached:
                return True
            reached += stride * (size - 1)
    return False


def _spanned_spec(array: Array, buffer: int, low: int) -> ArraySpec:
    start = cast(int, array.__array_interface__["data"][0])
    strides = tuple(s // array.itemsize for s in array.strides)
    offset = (start - low) // array.itemsize
    return replace(_written_spec(array, buffer, offset, strides), apart=True)


def _written_spec(array: Array, buffer: int, offset: int, strides: tuple[int, ...]) -> ArraySpec:
    """Of an array that is written only where no two elements are one."""
    repeats = array.flags.writeable and _repeats(array)
    writeable = array.flags.writeable and not repeats
    return ArraySpec(buffer, offset, array.shape, strides, writeable, repeats=repeats)


def _together(
    group: Sequence[tuple[int, int]],
    arrays: Sequence[Array],
    names: Sequence[str],
    specs: dict[int, ArraySpec],
    buffer: int,
) -> tuple[Place, BufferSpec]:
    """One buffer for arrays that overlap."""
    members = [arrays[n] for n, _ in group]
    spans = [bounds(a) for a in members]
    low, high = min(s for s, _ in spans), max(e for _, e in spans)
    item = members[0].itemsize
    shared = ", ".join(f"'{names[n]}'" for n, _ in group)
    odd = any(
        a.dtype != members[0].dtype
        or not a.flags.aligned
        or (s - low) % item
        or any(t % item for t in a.strides)
        for a, (s, _) in zip(members, spans, strict=True)
    )
    if odd:
        raise UnsupportedError(
            f"{user_place()}: arguments {shared} share memory, and not element by element"
        )
    for (number, _), array in zip(group, members, strict=True):
        specs[number] = _spanned_spec(array, buffer, low)
    for (number, _), array, span in zip(group, members, spans, strict=True):
        dense = _dense(number, array) if span == (low, high) else None
        if dense is not None:
            return dense, BufferSpec(tuple(array.shape[a] for a in dense.axes), array.dtype)
    first = group[0][0]
    start = low - cast(int, arrays[first].__array_interface__["data"][0])
    elements = (high - low) // item
    place = Place("span", first, low=start, elements=elements)
    return place, BufferSpec((elements,), members[0].dtype)
