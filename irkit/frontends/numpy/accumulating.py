"""`accumulate`, `reduce` and `reduceat` of the universal functions that no op of the graph combines by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from irkit.frontends.numpy.arrays import TracedArray, is_traced, value_of
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.ufunc_calls import output_of, store

BLOCK = 32
"""Elements that are combined among themselves before blocks are combined."""
IN_PAIRS = frozenset(
    [
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "fmax",
        "fmin",
        "gcd",
        "hypot",
        "lcm",
        "logaddexp",
        "logaddexp2",
        "logical_and",
        "logical_or",
        "logical_xor",
        "maximum",
        "minimum",
        "multiply",
    ]
)
"""Functions of which it makes no difference, but for rounding, which pairs are combined first."""
CHANGES_ONE = ("hypot", "gcd")
"""Those that combine one element with their neutral one to something else: NumPy begins with that."""
IN_ORDER = 128
"""Elements that other functions combine, one after another."""


def accumulate(ufunc: np.ufunc, x: Any, axis: int, dtype: Any, out: Any) -> Any:
    """`ufunc.accumulate`: what each element and all before it along an axis combine to.

    Raises UnsupportedError for a function of other types, and for many elements that have to be combined in
    their order.
    """
    array = _elements(ufunc, "accumulate", x, dtype)
    place = normalize_axis_index(axis, array.ndim)
    running = _running if ufunc.__name__ in IN_PAIRS else _in_order
    made = running(ufunc, array, place)
    target = output_of(out)
    if target is not None:
        return store(value_of(made), target)
    return made if made is not array else array.copy()


def reduce(ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool) -> Any:
    """`ufunc.reduce` along axes, None for all, without `initial=` and `where=`. Raises as `accumulate`, and
    ValueError of no elements, where the function has no neutral one."""
    array = _elements(ufunc, "reduce", x, dtype)
    axes = range(array.ndim) if axis is None else normalize_axis_tuple(axis, array.ndim)
    if len(axes) > 1 and ufunc.__name__ not in IN_PAIRS:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    if all(array.shape[place] == 1 for place in axes) and ufunc.__name__ in CHANGES_ONE:
        array = ufunc(array, ufunc.identity)
    for place in axes:
        array = _combined(ufunc, array, place)
    made: Any = array if keepdims else LIBRARY.squeeze(array, tuple(axes))
    made = made[()] if made.ndim == 0 else made
    target = output_of(out)
    return made if target is None else store(value_of(array_of(made)), target)


def reduceat(
    ufunc: np.ufunc, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """`ufunc.reduceat` at indices that are known, 128 at most. Raises UnsupportedError for others, and
    NumPy's IndexError."""
    if is_traced(indices) and indices.spot.known is None:
        raise refused(f"{ufunc.__name__}.reduceat at indices that are computed")
    starts = cast("list[int]", np.asarray(indices, np.intp).tolist())
    array = array_of(x)
    place = normalize_axis_index(axis, array.ndim)
    extent = array.shape[place]
    if len(starts) > IN_ORDER or not starts:
        raise refused(
            f"{ufunc.__name__}.reduceat at {len(starts)} indices: expected 1 to {IN_ORDER}"
        )
    odd = [s for s in starts if not 0 <= s < extent]
    if odd:
        raise IndexError(f"index {odd[0]} out-of-bounds in {ufunc.__name__}.reduceat [0, {extent})")
    ends = [b if b > a else a + 1 for a, b in zip(starts, [*starts[1:], extent], strict=True)]
    kind = ufunc.reduceat(np.ones(1, array.dtype), [0], dtype=dtype).dtype

    def combined(some: Any) -> Any:
        if some.shape[place] == 1:
            return some.astype(kind)
        return ufunc.reduce(some, axis=place, dtype=dtype, keepdims=True)

    parts = [combined(_part(array, place, a, b)) for a, b in zip(starts, ends, strict=True)]
    return LIBRARY.concatenate(parts, axis=place, out=out)


def _elements(ufunc: np.ufunc, method: str, x: Any, dtype: Any) -> TracedArray:
    """The elements in the dtype that NumPy combines them in."""
    array = array_of(x)
    if array.dtype.kind == "c":
        raise refused(f"{ufunc.__name__}.{method} of complex numbers")
    resolve: Any = ufunc.resolve_dtypes
    options: dict[str, Any] = {} if dtype is None else {"signature": (np.dtype(dtype), None, None)}
    # NumPy: a reduction's result is its first operand too.
    found = resolve((None, array.dtype, None), reduction=True, **options)
    if ufunc.nin != 2 or len(set(found)) != 1:
        raise refused(f"{ufunc.__name__}.{method} of {array.dtype}")
    return array.astype(found[0], copy=False)


def _part(array: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """From one index to below another, along an axis."""
    return array[(slice(None),) * axis + (slice(start, stop),)]


def _joined(parts: Sequence[Any], axis: int) -> Any:
    return LIBRARY.concatenate(parts, axis=axis)


def _running(ufunc: np.ufunc, x: Any, axis: int) -> Any:
    """In blocks, which the ends of the blocks before them are then combined with (Blelloch, "Prefix sums and
    their applications", 1990); what is left after the last whole block is one more."""
    extent = x.shape[axis]
    if extent <= 2 * BLOCK:
        return _doubling(ufunc, x, axis)
    blocks, before, after = extent // BLOCK, x.shape[:axis], x.shape[axis + 1 :]
    whole = _part(x, axis, 0, blocks * BLOCK).reshape(*before, blocks, BLOCK, *after)
    inside = _doubling(ufunc, whole, axis + 1)
    ends = _running(ufunc, _part(inside, axis + 1, BLOCK - 1, BLOCK).squeeze(axis + 1), axis)
    ahead = LIBRARY.expand_dims(_part(ends, axis, 0, -1), axis + 1)
    moved = ufunc(ahead, _part(inside, axis, 1, None))
    made = _joined([_part(inside, axis, 0, 1), moved], axis)
    made = made.reshape(*before, blocks * BLOCK, *after)
    if blocks * BLOCK == extent:
        return made
    rest = _doubling(ufunc, _part(x, axis, blocks * BLOCK, None), axis)
    return _joined([made, ufunc(_part(ends, axis, -1, None), rest)], axis)


def _doubling(ufunc: np.ufunc, x: Any, axis: int) -> Any:
    """In log2(n) steps (Hillis and Steele, 1986)."""
    distance = 1
    while distance < x.shape[axis]:
        moved = ufunc(_part(x, axis, 0, -distance), _part(x, axis, distance, None))
        x, distance = _joined([_part(x, axis, 0, distance), moved], axis), 2 * distance
    return x


def _in_order(ufunc: np.ufunc, x: Any, axis: int) -> Any:
    """One after another."""
    extent = x.shape[axis]
    if ufunc is np.subtract and extent > IN_ORDER:
        # All but the first are taken away: rounded otherwise, as sums are.
        signed = _joined([_part(x, axis, 0, 1), -_part(x, axis, 1, None)], axis)
        return _running(np.add, signed, axis)
    if extent > IN_ORDER:
        raise refused(
            f"{ufunc.__name__} of {extent} elements one after another: irkit.range says it as a loop"
        )
    rows = [_part(x, axis, n, n + 1) for n in range(extent)]
    for n in range(1, len(rows)):
        rows[n] = ufunc(rows[n - 1], rows[n])
    return _joined(rows, axis) if rows else x


def _combined(ufunc: np.ufunc, x: Any, axis: int) -> Any:
    """All elements along an axis as one: the two halves of those that are left, again and again."""
    extent = x.shape[axis]
    if extent == 0:
        return _of_nothing(ufunc, x, axis)
    if ufunc.__name__ not in IN_PAIRS:
        return _part(_in_order(ufunc, x, axis), axis, -1, None)
    while (extent := x.shape[axis]) > 1:
        half = extent // 2
        found = ufunc(_part(x, axis, 0, half), _part(x, axis, half, 2 * half))
        odd = [_part(x, axis, 2 * half, None)] if extent % 2 else []
        x = _joined([found, *odd], axis) if odd else found
    return x


def _of_nothing(ufunc: np.ufunc, x: Any, axis: int) -> Any:
    if ufunc.identity is None:
        raise ValueError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        )
    shape = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    return LIBRARY.full_like(x, ufunc.identity, shape=shape)
