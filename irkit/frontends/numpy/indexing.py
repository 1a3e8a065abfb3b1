"""Indexing of traced arrays: views, elements, picked rows, masks."""

from __future__ import annotations

import operator
from typing import Any, cast

import numpy as np

from irkit.dialects import graph
from irkit.frontends.array_ops import moving
from irkit.frontends.numpy.arrays import TracedArray, fresh, in_buffer, is_traced, value_of
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.masked import MaskedArray, masked_operand
from irkit.frontends.numpy.masked_places import set_masked_places
from irkit.frontends.numpy.moved_views import at, indices_of, limits_of, seen, terms_of
from irkit.frontends.numpy.operands import array_of, operand, traced_list
from irkit.frontends.numpy.picking import combine_picked, get_picked, set_picked
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.spots import Spot
from irkit.frontends.numpy.ufunc_calls import resolved, store
from irkit.frontends.numpy.varying import exact, set_varying, varying_view
from irkit.frontends.numpy.writing import check_writeable
from irkit.weights import Array


def get_item(array: TracedArray, key: Any) -> Any:
    """`array[key]`: a view, a number, or a new array. Raises IndexError as NumPy does."""
    keys = _keys(key)
    if (picked := _behind_mask(array, keys)) is not None:
        return _masked(*picked)
    if any(map(_picks, keys)):
        return get_picked(array, keys)
    varying = varying_view(array, keys, lambda k: TracedArray(_view(array, k)))
    if varying is not None:
        return varying
    found = _view(array, keys)
    if found.layout.ndim == 0 and not any(k is Ellipsis for k in keys):
        contents = found.known
        number = fresh(value_of(TracedArray(found)), scalar=True)
        number.spot.buffer.known = None if contents is None else in_buffer(contents.copy())
        return number
    return TracedArray(found)


def set_item(array: TracedArray, key: Any, value: Any) -> None:
    """`array[key] = value`. Raises ValueError, IndexError as NumPy does."""
    if array.spot.scalar:
        raise TypeError(f"'numpy.{array.dtype}' object does not support item assignment")
    keys = _keys(key)
    check_writeable(array, "assignment destination is read-only")
    if any(type(k) is MaskedArray for k in keys):
        set_masked_places(array, keys, value)
    elif (picked := _behind_mask(array, keys)) is not None:
        _set_masked(*picked, value)
    elif any(map(_picks, keys)):
        set_picked(array, keys, value)
    elif (varying := varying_view(array, keys, lambda k: TracedArray(_view(array, k)))) is not None:
        set_varying(varying, value)
    else:
        assign(TracedArray(_view(array, keys)), exact(value))


def combine_at(ufunc: np.ufunc, array: Any, key: Any, value: Any) -> None:
    """`ufunc.at(array, key, value)`. Raises ValueError, IndexError and TypeError as NumPy does."""
    name = f"{ufunc.__name__}.at"
    if ufunc.__name__ not in moving.COMBINED:
        raise refused(f"{name}; there are {', '.join(f'{n}.at' for n in moving.COMBINED)}")
    if not is_traced(array):
        raise refused(
            f"{name} of an array that is no argument of the function and was not made in it"
        )
    check_writeable(array, "assignment destination is read-only")
    found = operand(value)
    _check_number(name, array.dtype, found.given)
    to = resolved(ufunc, [operand(array), found], array, {"casting": "unsafe"})
    dtypes = {np.dtype(t) for t in to}
    if dtypes != {array.dtype} or array.dtype == bool:
        raise refused(
            f"{name} of {found.kind} on an array of {array.dtype}: convert the values before"
        )
    keys = _keys(key)
    if any(map(_is_mask, keys)):
        raise refused(f"{name} with a mask that is computed")
    if any(map(_picks, keys)):
        combine_picked(ufunc.__name__, array, keys, value)
    else:
        # Nothing is there twice.
        rest = () if any(k is Ellipsis for k in keys) else (Ellipsis,)
        part = get_item(array, (*keys, *rest))
        ufunc(part, value, out=part)


def _check_number(name: str, own: np.dtype[Any], number: Any) -> None:
    """Of a number of Python's NumPy makes an array here, of a wide dtype, which it computes in; rounded to
    `own` that is the same where `own` has the number (Figueroa, "When is double rounding innocuous?", 1995).
    """
    if type(number) not in (int, float) or own.kind == "c":
        return
    wide: Array = np.asarray(number)
    kind = np.result_type(own, wide).kind if wide.dtype != object else ""
    # Of integers every result is the same, modulo the range of `own`, in one that holds all of it.
    alike = kind == own.kind or {kind, own.kind} == {"i", "u"}
    with np.errstate(all="ignore"):
        same = alike and np.array_equal(wide.astype(own), wide, equal_nan=own.kind == "f")
    if not same:
        raise refused(
            f"{name} of {number}, which NumPy takes as {wide.dtype}, on an array of {own}: convert the "
            "values before"
        )


def assign(target: TracedArray, value: Any) -> None:
    """`target[...] = value`, converted as NumPy's assignment does."""
    found = operand(value)
    extra = len(found.shape) - target.ndim
    shape = found.shape
    # NumPy drops leading extents of 1.
    if extra > 0 and shape[:extra] == (1,) * extra:
        shape = shape[extra:]
    if len(shape) > target.ndim or np.broadcast_shapes(shape, target.shape) != target.shape:
        raise ValueError(
            f"could not broadcast input array from shape {found.shape} into shape {target.shape}"
        )
    if target.size == 0:
        return
    store(recorder().reshape(found.value(target.dtype), shape), target)


def _keys(key: Any) -> tuple[Any, ...]:
    """The parts of a key; lists as arrays."""
    keys = cast(tuple[Any, ...], key) if isinstance(key, tuple) else (key,)
    return tuple(map(_plain_key, keys))


def _plain_key(key: Any) -> Any:
    """A list as an array; an array that is known as itself. Raises UnsupportedError for a slice of no known
    length."""
    if isinstance(key, slice):
        return _known_slice(cast("slice[Any, Any, Any]", key))
    if isinstance(key, list):
        return _as_array(cast("list[Any]", key))
    contents = key.spot.known if is_traced(key) else None
    if contents is None:
        return key
    return contents.copy() if contents.ndim else contents[()]


def _known_slice(key: slice[Any, Any, Any]) -> slice[Any, Any, Any]:
    """A slice whose ends are numbers, in NumPy's order of them."""
    return slice(*map(_known_limit, limits_of(key)))


def _known_limit(limit: Any) -> Any:
    if not is_traced(limit):
        return limit
    if limit.spot.known is None:
        raise refused(
            "a slice whose start, stop or step is computed, so that its length is not known while the "
            "function is traced: compare np.arange(n) with it, and choose by np.where or a mask"
        )
    return operator.index(limit)


def _as_array(key: list[Any]) -> Any:
    found = traced_list(key)
    if found is not None:
        return found
    known: Array = np.asarray(key)
    return known.astype(np.intp) if known.size == 0 else known


def _is_mask(key: Any) -> bool:
    """Whether it is a mask that is not known."""
    return is_traced(key) and key.dtype == bool


def _behind_mask(
    array: TracedArray, keys: tuple[Any, ...]
) -> tuple[TracedArray, TracedArray, int] | None:
    """What a mask that is not known picks from, the mask, which is of its leading axes, and how many axes
    stand before what was picked; None where there is no mask. Beside it may stand slices and known numbers.
    """
    masks = [n for n, key in enumerate(keys) if _is_mask(key)]
    if not masks:
        return None
    at = masks[0]
    mask = keys[at]
    others = [key for n, key in enumerate(keys) if n != at]
    if not others:
        return array, mask, 0
    if len(masks) > 1 or not mask.ndim or not all(map(_is_plain, others)):
        raise refused("a mask beside computed or several indices, other masks or None")
    rest = array.ndim - mask.ndim - sum(key is not Ellipsis for key in others)
    whole = (slice(None),) * max(rest, 0)
    before, after = _spelt_out(keys[:at], whole), _spelt_out(keys[at + 1 :], whole)
    if mask.shape != array.shape[len(before) : len(before) + mask.ndim]:
        raise IndexError(
            f"boolean index did not match indexed array: shapes {mask.shape} and {array.shape}"
        )
    view = get_item(array, (*before, *(slice(None),) * mask.ndim, *after))
    first = sum(isinstance(key, slice) for key in before)
    axes = range(mask.ndim)
    moved: Any = LIBRARY.moveaxis(view, [first + n for n in axes], [*axes])
    return moved, mask, first


def _spelt_out(keys: tuple[Any, ...], whole: tuple[slice, ...]) -> tuple[Any, ...]:
    """Keys with slices in the place of an ellipsis."""
    return tuple(k for key in keys for k in (whole if key is Ellipsis else (key,)))


def _is_plain(key: Any) -> bool:
    """Whether it is a slice or a number that is known."""
    if isinstance(key, slice):
        given = cast("slice[Any, Any, Any]", key)
        bounds = given.start, given.stop, given.step
        return all(b is None or _is_number(b) for b in bounds)
    return key is Ellipsis or _is_number(key)


def _is_number(key: Any) -> bool:
    return type(key) is int or isinstance(key, np.integer)


def _picks(key: Any) -> bool:
    """Whether it picks elements, so that what is found is no view."""
    return is_traced(key) or (isinstance(key, np.ndarray | bool | np.bool_))


# Views


def _view(array: TracedArray, keys: tuple[Any, ...]) -> Spot:
    """What a key of numbers, slices, None and `...` sees."""
    spot = array.spot
    symbols = {s for k in keys for part in indices_of(k) for s in part.affine.terms}
    loops = [s for s, _ in symbols]
    plain = tuple(at(k, {}) for k in keys)
    shadow = seen(spot.layout, plain)
    if not loops:
        return spot.viewed(shadow)
    terms = terms_of(spot, keys, shadow, sorted(set(loops), key=id))
    return spot.viewed(shadow, terms)


# Masks


def _masked(array: TracedArray, mask: TracedArray, before: int) -> Any:
    """The elements where a mask holds: as many as it has, which is not known, so only for what keeps them in
    their places."""
    _check_mask(array, mask)
    return MaskedArray(value_of(array), value_of(mask), before, array.spot.known)


def _check_mask(array: TracedArray, mask: TracedArray) -> None:
    if mask.shape != array.shape[: mask.ndim]:
        raise IndexError(
            f"boolean index did not match indexed array: shapes {mask.shape} and {array.shape}"
        )


def _set_masked(array: TracedArray, mask: TracedArray, before: int, value: Any) -> None:
    """Write where a mask holds: a number, rows that are alike, or what was picked with the same mask."""
    _check_mask(array, mask)
    r = recorder()
    chosen = value_of(mask)
    full = r.expand(r.reshape(chosen, chosen.shape + (1,) * (array.ndim - mask.ndim)), array.shape)
    picked = masked_operand(value, chosen, before, array.ndim)
    if picked is None:
        found = operand(value)
        most = 0 if before else array.ndim - mask.ndim
        if len(found.shape) > most and found.shape != (1,):
            raise refused(
                "an assignment through a mask of as many values as it picks, which is not known: "
                "np.where(mask, new, old)"
            )
        picked = r.reshape(found.value(array.dtype), () if found.shape == (1,) else found.shape)
    new = r.expand(r.cast(picked, array.dtype), array.shape)
    r.write(r.op(graph.WhereOp, full, new, value_of(array)), array.spot.view)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """`np.take_along_axis`"""
    array = array_of(arr)
    if axis is None:
        array, axis = array_of(LIBRARY.ravel(array)), 0
    axis %= array.ndim
    r = recorder()
    places = operand(indices).value(np.dtype(np.int64))
    r.within(places, array.shape[axis])
    return fresh(moving.take_along_axis(r.compose, value_of(array), places, axis))


def take(
    x: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """`np.take`: rows along an axis, None for elements in C order."""
    array = array_of(x)
    if out is not None:
        raise refused("np.take with out=")
    if axis is None:
        array, axis = array_of(LIBRARY.ravel(array)), 0
    keys = (slice(None),) * (axis % array.ndim)
    rows: Any = indices if is_traced(indices) else np.asarray(indices)
    if mode == "wrap":
        rows = rows % array.shape[axis]
    elif mode == "clip":
        rows = LIBRARY.clip(rows, 0, array.shape[axis] - 1)
    return array[(*keys, rows)]


def sort_in_place(
    array: TracedArray, axis: int = -1, kind: Any = None, order: Any = None, stable: Any = None
) -> None:
    """`ndarray.sort`"""
    check_writeable(array, "sort array is read-only")
    assign(array, LIBRARY.sort(array, axis=axis))
