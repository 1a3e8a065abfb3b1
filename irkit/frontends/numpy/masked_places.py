"""Assignments at indices that a mask picked from arrays of them, `a[rows[m], columns[m]] = v`: where all
indices are known and differ, each element that one stands for is written or stays, as the mask says."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from irkit.dialects import graph
from irkit.frontends.numpy.arrays import TracedArray, fresh, value_of
from irkit.frontends.numpy.masked import UNKNOWN, MaskedArray, masked_operand, same_mask
from irkit.frontends.numpy.operands import operand
from irkit.frontends.numpy.picking import get_picked, set_picked
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.weights import Array


def set_masked_places(array: TracedArray, keys: tuple[Any, ...], value: Any) -> None:
    """`array[keys] = value`. Raises UnsupportedError where it is not said which elements may be written."""
    first, places = _places(array, keys)
    mask, r = first.mask, recorder()
    new = _values(first, array.dtype, value)
    size = array.size
    if places.size == size and np.array_equal(places.reshape(-1), np.arange(size)):
        # Each element has an index of its own, in order.
        chosen, values = (r.reshape(v, array.shape) for v in (mask, new))
        r.write(r.op(graph.WhereOp, chosen, values, value_of(array)), array.spot.view)
        return
    at = np.unravel_index(places, array.shape)
    old = value_of(get_picked(array, at))
    set_picked(array, at, fresh(r.op(graph.WhereOp, mask, new, old)))


def _places(array: TracedArray, keys: tuple[Any, ...]) -> tuple[MaskedArray, Array]:
    """One of the keys, and the number of the element of each index in C order."""
    picked = [k for k in keys if type(k) is MaskedArray]
    first = picked[0]
    alike = all(
        same_mask(k.same, first.same) and not k.before and k.array.shape == first.held.shape
        for k in picked
    )
    known = [k.array.spot.known for k in picked]
    if not alike or len(picked) != len(keys) or len(keys) != array.ndim:
        raise refused(f"indices that a mask picked, of some axes or beside others: {UNKNOWN}")
    if any(k is None or k.dtype.kind not in "iu" for k in known):
        raise refused(f"indices that a mask picked and that are computed: {UNKNOWN}")
    try:
        places = np.arange(size := array.size).reshape(array.shape)[tuple(cast(Any, known))]
    except IndexError as error:
        raise refused(f"indices that a mask picked: {error}") from None
    if np.bincount(places.reshape(-1), minlength=size).max(initial=0) > 1:
        raise refused("indices that a mask picked, of which some are there twice")
    return first, places


def _values(first: MaskedArray, dtype: np.dtype[Any], value: Any) -> Value:
    """What is to be written, for all indices."""
    r, shape = recorder(), first.held.shape
    picked = masked_operand(value, first.same, 0, len(shape))
    if picked is not None:
        return r.cast(picked, dtype)
    found = operand(value)
    if found.shape not in ((), (1,)):
        raise refused(f"an assignment of as many values as a mask picks: {UNKNOWN}")
    return r.expand(r.reshape(found.value(dtype), ()), shape)
