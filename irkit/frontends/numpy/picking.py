"""Picking elements by arrays of indices ("fancy" indexing), where it can be said which shape comes out."""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np

from irkit.annotations.placing import MANY, PLACE
from irkit.dialects import graph
from irkit.frontends.array_ops import moving
from irkit.frontends.numpy.arrays import TracedArray, empty, fresh, is_traced, value_of
from irkit.frontends.numpy.host_calls import host_call
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.operands import operand
from irkit.frontends.numpy.picks import Pick
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import Recorder, recorder
from irkit.frontends.numpy.records import Value
from irkit.weights import Array


def get_picked(array: TracedArray, keys: tuple[Any, ...]) -> Any:
    """Elements at indices that are known, anywhere; at indices that are traced, along one axis."""
    if not any(is_traced(k) for k in keys):
        return _get_known(array, _plain(keys))
    return _get_traced(*_sliced(array, keys), keys)


def set_picked(array: TracedArray, keys: tuple[Any, ...], value: Any) -> None:
    """Write at indices, computed ones along leading axes; of equal ones the last stands, as in NumPy."""
    if any(is_traced(k) for k in keys):
        if is_traced(value) and value.spot.buffer.pick in array.spot.buffer.picks:
            value.spot.buffer.pick.stored(keys)
        _set_traced(*_sliced(array, keys), value)
        return
    keys = _plain(keys)
    places = _places(array, keys)
    found = operand(value)
    shape = found.shape
    extra = len(shape) - places.ndim
    if extra > 0 and shape[:extra] == (1,) * extra:  # NumPy drops leading extents of 1
        shape = shape[extra:]
    if np.broadcast_shapes(shape, places.shape) != places.shape:
        raise ValueError(
            f"shape mismatch: value array of shape {found.shape} could not be broadcast to indexing "
            f"result of shape {places.shape}"
        )
    if places.size == 0:
        return
    # Where in the values each element comes from; -1: it stays.
    source = np.full(array.size, -1, np.int64)
    source[places.reshape(-1)] = np.arange(places.size)
    r = recorder()
    values = r.expand(r.reshape(found.value(array.dtype), shape), places.shape)
    flat = r.reshape(values, (places.size,))
    moved = r.op(graph.GatherOp, flat, r.constant(np.maximum(source, 0)), axis=0)
    new = r.reshape(moved, array.shape)
    stays = r.constant((source < 0).reshape(array.shape))
    r.write(r.op(graph.WhereOp, stays, value_of(array), new), array.spot.view)


def _sliced(array: TracedArray, keys: tuple[Any, ...]) -> tuple[TracedArray, tuple[Any, ...]]:
    """The view that slices beside computed indices are of, and the keys that are left."""
    whole = _whole(keys, array.ndim)
    cuts = [isinstance(k, slice) and not _all(k) for k in whole]
    if not any(cuts) or any(k is None or isinstance(k, bool) or _is_mask(k) for k in whole):
        return array, keys
    every = slice(None)
    view = array[tuple(k if cut else every for k, cut in zip(whole, cuts, strict=True))]
    return view, tuple(every if cut else k for k, cut in zip(whole, cuts, strict=True))


def _set_traced(array: TracedArray, keys: tuple[Any, ...], value: Any) -> None:
    """Elements of the leading axes at computed indices: each looks for the last index that is its own."""
    r = recorder()
    if not r.differentiated and _is_numpys(array, keys):
        host_call(PLACE, (array, keys, value), {})
        return
    extent, flat, shape = _numbered(array, keys)
    found, rest, count = operand(value), shape[len(flat.shape) :], prod(flat.shape)
    dropped = found.shape[max(0, len(found.shape) - len(shape)) :]
    if prod(dropped) != prod(found.shape) or not _fits(dropped, shape):
        raise ValueError(
            f"shape mismatch: value array of shape {found.shape} could not be broadcast to indexing "
            f"result of shape {shape}"
        )
    given = r.reshape(found.value(array.dtype), dropped)
    values = r.reshape(r.expand(given, shape), (count, *rest))
    rows = r.reshape(value_of(array), (extent, *rest))
    after = moving.put(r.compose, rows, r.reshape(flat, (count,)), values)
    r.write(r.reshape(after, array.shape), array.spot.view)


def _is_numpys(array: TracedArray, keys: tuple[Any, ...]) -> bool:
    """Whether NumPy places values: of complex numbers, along other than the leading axes, and where each
    element would be compared with many indices."""
    if not all(map(_is_plain, keys)):
        return False
    whole = _whole(keys, array.ndim)
    wanted = [d for d, k in enumerate(whole) if not _all(k)]
    if array.dtype.kind == "c" or wanted != list(range(len(wanted))):
        return True
    if any(_odd(whole[d]) or _is_mask(whole[d]) for d in wanted):
        return True
    shapes: list[tuple[int, ...]] = [k.shape for k in whole if _has_shape(k)]
    return prod(array.shape[: len(wanted)]) * prod(np.broadcast_shapes(*shapes)) >= MANY


def _has_shape(key: Any) -> bool:
    return is_traced(key) or isinstance(key, np.ndarray)


def _is_plain(key: Any) -> bool:
    """Whether a function of the host can be given it: the ends of slices are known."""
    ends: list[Any] = [getattr(key, end, None) for end in ("start", "stop", "step")]
    return not isinstance(key, slice) or not any(is_traced(e) or isinstance(e, Index) for e in ends)


def combine_picked(kind: str, array: TracedArray, keys: tuple[Any, ...], value: Any) -> None:
    """`np.<kind>.at(array, keys, value)`: each index counts, however often it is there."""
    r = recorder()
    extent, flat, shape = _numbered(array, keys)
    found, rest = operand(value), shape[len(flat.shape) :]
    if not _fits(found.shape, shape):
        raise ValueError(
            f"values of shape {found.shape} are not broadcastable to what the indices pick, {shape}"
        )
    count = prod(flat.shape)
    values = r.reshape(r.expand(found.value(array.dtype), shape), (count, *rest))
    before = r.reshape(value_of(array), (extent, *rest))
    after = moving.combine(r.compose, kind, before, r.reshape(flat, (count,)), values)
    r.write(r.reshape(after, array.shape), array.spot.view)


def _numbered(array: TracedArray, keys: tuple[Any, ...]) -> tuple[int, Value, tuple[int, ...]]:
    """Keys as numbers of rows, elements of the leading axes that they pick from: how many rows there are, the
    numbers, and the shape of what is picked."""
    r, whole = recorder(), _whole(keys, array.ndim)
    wanted = [d for d, k in enumerate(whole) if not _all(k)]
    odd = any(_odd(whole[d]) or _is_mask(whole[d]) for d in wanted)
    if wanted == list(range(len(wanted))) and wanted and not odd:
        extents = array.shape[: len(wanted)]
        flat = _joined(r, [_checked(r, whole[d], size) for d, size in enumerate(extents)], extents)
        return prod(extents), flat, (*flat.shape, *array.shape[len(wanted) :])
    if any(is_traced(k) for k in keys):
        raise refused(
            "computed indices of other than the first axes, or beside slices, masks or None"
        )
    places = _places(array, _plain(keys))
    return array.size, r.constant(places.astype(np.int64)), places.shape


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of one shape is broadcast to another."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(s in (1, w) for s, w in pairs)


def _is_mask(key: Any) -> bool:
    return isinstance(key, np.ndarray) and cast(Array, key).dtype == bool


def _all(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


def _plain(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Indices of loops as the numbers of this round."""
    return tuple(
        k.special("an index of a loop beside arrays of indices") if isinstance(k, Index) else k
        for k in keys
    )


def _places(array: TracedArray, keys: tuple[Any, ...]) -> Array:
    """Numbers of the picked elements, in C order of the array."""
    numbers: Any = np.arange(array.size).reshape(array.shape)
    return np.asarray(numbers[keys])


def _get_known(array: TracedArray, keys: tuple[Any, ...]) -> Any:
    r, value = recorder(), value_of(array)
    rows = _rows(array, keys)
    if rows is not None:
        axis, picked = rows
        return fresh(r.op(graph.GatherOp, value, r.constant(picked), axis=axis), scalar=True)
    places = _places(array, keys)
    if array.size == 0:
        return empty(places.shape, array.dtype)
    flat = r.reshape(value, (array.size,))
    return fresh(r.op(graph.GatherOp, flat, r.constant(places), axis=0), scalar=True)


def _rows(array: TracedArray, keys: tuple[Any, ...]) -> tuple[int, Array] | None:
    """The axis and the indices, where one axis alone is picked from by whole numbers."""
    wanted = [d for d, k in enumerate(keys) if not _all(k)]
    if len(wanted) != 1 or not isinstance(keys[wanted[0]], np.ndarray):
        return None
    axis, indices = wanted[0], cast(Array, keys[wanted[0]])
    if indices.dtype == bool or array.shape[axis] == 0 or indices.size == 0:
        return None
    size = array.shape[axis]
    if indices.min() < -size or indices.max() >= size:
        raise IndexError(f"index is out of bounds for axis {axis} with size {size}")
    return axis, np.where(indices < 0, indices + size, indices).astype(np.int64)


def _get_traced(array: TracedArray, keys: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
    """At computed indices: arrays of them for neighbouring axes, all else whole. Elements in a row of these
    axes are numbered as in C order. `given`: the keys with slices, which `array` is cut by."""
    keys = _whole(keys, array.ndim)
    wanted = [d for d, k in enumerate(keys) if not _all(k)]
    first, last = wanted[0], wanted[-1]
    if wanted != list(range(first, last + 1)) or any(_odd(keys[d]) for d in wanted):
        raise refused("computed indices beside slices or None")
    r = recorder()
    extents = array.shape[first : last + 1]
    numbers = [_checked(r, keys[first + d], size) for d, size in enumerate(extents)]
    flat = _joined(r, numbers, extents)
    value = value_of(array)
    shape = (*array.shape[:first], prod(extents), *array.shape[last + 1 :])
    # Where `...` stands NumPy gives no number.
    number = not any(k is Ellipsis for k in given)
    picked = fresh(r.op(graph.GatherOp, r.reshape(value, shape), flat, axis=first), scalar=number)
    if not picked.spot.scalar and all(keys[d].spot.scalar for d in wanted if is_traced(keys[d])):
        picked.spot.buffer.pick = Pick(given)
        array.spot.buffer.picks.append(picked.spot.buffer.pick)
    return picked


def _joined(r: Recorder, numbers: list[Value], extents: tuple[int, ...]) -> Value:
    """Indices along several axes as numbers of their elements in C order."""
    flat = numbers[0]
    for number, size in zip(numbers[1:], extents[1:], strict=True):
        flat = r.op(graph.AddOp, r.op(graph.MulOp, flat, _number(r, size)), number)
    return flat


def _whole(keys: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """Keys for every axis: `...` and what is missing as whole axes."""
    at = next((d for d, k in enumerate(keys) if k is Ellipsis), None)
    missing = (slice(None),) * (ndim - len(keys) + (at is not None))
    if at is None:
        return (*keys, *missing)
    return (*keys[:at], *missing, *keys[at + 1 :])


def _odd(key: Any) -> bool:
    return key is None or isinstance(key, slice | bool)


def _number(r: Recorder, number: int) -> Value:
    return r.constant(np.array(number, np.int64))


def _checked(r: Recorder, key: Any, size: int) -> Value:
    """Indices from 0; negative ones count from the end."""
    found = operand(key)
    if found.kind is not int and np.dtype(found.kind).kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    value = found.value(np.dtype(np.int64))
    r.within(value, size)
    wrapped = r.op(graph.AddOp, value, _number(r, size))
    below = r.op(graph.CompareOp, value, _number(r, 0), predicate="lt")
    return r.op(graph.WhereOp, below, wrapped, value)
