"""Functions that move elements or look at them otherwise: views where NumPy has views, else copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from irkit.dialects import graph
from irkit.frontends.numpy.arrays import TracedArray, empty, fresh, is_traced, value_of
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import WEAK, Operand, array_of, operand, promoted
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.frontends.numpy.ufunc_calls import output_of, store
from irkit.weights import Array


def conjugated(x: Any) -> Any:
    """`x.conj()`: of real numbers themselves."""
    return np.conjugate(x) if array_of(x).dtype.kind == "c" else x


def ndim(x: Any) -> int:
    """`np.ndim`"""
    return len(operand(x).shape)


def shape_of(x: Any) -> tuple[int, ...]:
    """`np.shape`"""
    return operand(x).shape


def size(x: Any, axis: int | None = None) -> int:
    """`np.size`"""
    shape = operand(x).shape
    return prod(shape) if axis is None else shape[axis]


def viewing(take: Callable[..., Any]) -> Callable[..., Any]:
    """A function that NumPy answers with a view."""

    def view(x: Any, *args: Any, **kwargs: Any) -> TracedArray:
        array = array_of(x)
        return TracedArray(array.spot.viewed(take(array.spot.layout, *args, **kwargs)))

    return view


def transposed(x: Any, *axes: Any) -> TracedArray:
    """`x.transpose(...)`"""
    array = array_of(x)
    return TracedArray(array.spot.viewed(array.spot.layout.transpose(*axes)))


def broadcast_to(x: Any, shape: Any, subok: bool = False) -> TracedArray:
    """`np.broadcast_to`: a view that cannot be written."""
    array = array_of(x)
    return TracedArray(array.spot.viewed(np.broadcast_to(array.spot.layout, shape)))


def broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[TracedArray, ...]:
    """`np.broadcast_arrays`"""
    shape = np.broadcast_shapes(*(operand(a).shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def reshape(x: Any, shape: Any, order: str = "C", copy: Any = None) -> TracedArray:
    """`np.reshape`: a view where strides allow one, else a copy."""
    array = array_of(x)
    shadow = array.spot.layout.reshape(shape, order=cast(Any, order))
    if array.spot.owns(shadow) and copy is not True:
        return TracedArray(array.spot.viewed(shadow))
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    r = recorder()
    if order == "F":
        turned = TracedArray(array.spot.viewed(array.spot.layout.T))
        return fresh(r.reshape(value_of(turned), shadow.shape[::-1])).T
    return fresh(r.reshape(value_of(array), shadow.shape))


def reshape_method(x: TracedArray, *shape: Any, order: str = "C", copy: Any = None) -> TracedArray:
    """`x.reshape(2, 3)` or `x.reshape((2, 3))`"""
    return reshape(x, shape[0] if len(shape) == 1 else shape, order, copy)


def ravel(x: Any, order: str = "C") -> TracedArray:
    """`np.ravel`: all elements in a row, a view where they lie so, else a copy."""
    array = array_of(x)
    if order == "K":
        array = TracedArray(array.spot.viewed(_as_in_memory(array.spot.layout)))
    if order == "A" and array.flags.f_contiguous and not array.flags.c_contiguous:
        order = "F"
    is_row = array.flags.f_contiguous if order == "F" else array.flags.c_contiguous
    return reshape(array if is_row else copied(array), -1, "F" if order == "F" else "C")


def _as_in_memory(layout: Array) -> Array:
    """The axes in the order in which elements lie in memory, backwards or not."""
    return layout.transpose(np.argsort([-abs(s) for s in layout.strides], kind="stable"))


def flatten(x: TracedArray, order: str = "C") -> TracedArray:
    """`x.flatten()`: all elements in a row, copied."""
    flat = ravel(x, order)
    return flat if flat.spot.buffer is not x.spot.buffer else copied(flat)


def copied(x: Any, order: str = "K", subok: bool = False) -> TracedArray:
    """`np.copy`"""
    array = array_of(x)
    return _laid_out(value_of(array), array, order)


def _laid_out(value: Value, like: TracedArray, order: str) -> TracedArray:
    """A new array of a value, in memory as an `order` says for a copy of `like`. Raises ValueError."""
    # NumPy says which orders there are.
    np.empty(0).copy(cast(Any, order))
    kept = order in "KA" and like.flags.f_contiguous and not like.flags.c_contiguous
    if order != "F" and not kept:
        return fresh(value)
    return store(value, empty(like.shape, value.dtype, fortran=True))


def copied_method(x: TracedArray, order: str = "C") -> TracedArray:
    """`x.copy()`"""
    return copied(x, order)


def lies_as(array: TracedArray, orders: str | None) -> bool:
    """Whether an array lies in memory as one of the `orders` asks, as all do for K and A."""
    known = {"C": array.flags.c_contiguous, "F": array.flags.f_contiguous}
    return orders is None or any(known.get(o.upper(), True) for o in orders)


def cast_to(
    x: TracedArray,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> TracedArray:
    """`x.astype(dtype)`. Raises TypeError where `casting` does not allow it, ValueError for other orders."""
    dtype = np.dtype(dtype)
    _check_casts([operand(x)], dtype, casting)
    if x.dtype == dtype and not copy and lies_as(x, order if order != "A" else "CF"):
        return x
    made = recorder().cast(value_of(x), dtype)
    return fresh(made, scalar=True) if x.spot.scalar else _laid_out(made, x, order)


def filled(x: TracedArray, value: Any) -> None:
    """`x.fill(value)`"""
    x[...] = value


def concatenate(
    arrays: Sequence[Any],
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> TracedArray:
    """`np.concatenate`. Raises TypeError where `casting` does not allow it."""
    operands = [operand(a) for a in arrays]
    if axis is None:
        operands, axis = [operand(ravel(o.given)) for o in operands], 0
    to = np.dtype(dtype) if dtype is not None else promoted(operands)
    axis = normalize_axis_index(axis, len(operands[0].shape))
    target = output_of(out)
    _check_casts(operands, to if target is None else target.dtype, casting)
    r = recorder()
    # NumPy says what is wrong with shapes; of arrays without elements nothing comes.
    shape = np.concatenate([np.empty(o.shape, bool) for o in operands], axis=axis).shape
    parts = [o for o in operands if 0 not in o.shape]
    if not parts:
        return empty(shape, to)
    result = r.op(graph.ConcatOp, *(o.value(to) for o in parts), axis=axis)
    return fresh(result) if target is None else store(result, target)


def _check_casts(operands: Sequence[Operand], to: np.dtype[Any], casting: str) -> None:
    for own in (np.dtype(o.kind) for o in operands):
        if not np.can_cast(own, to, cast(Any, casting)):
            raise TypeError(
                f"Cannot cast array data from {own!r} to {to!r} according to the rule '{casting}'"
            )


def where(condition: Any, *choices: Any) -> Any:
    """`np.where(condition, x, y)`. Raises UnsupportedError without x and y."""
    if len(choices) != 2:
        raise refused("np.where(condition) alone: how many places it finds is not known")
    test, x, y = operand(condition), *map(operand, choices)
    to = promoted([x, y])
    x, y = (_wrapped(v, to) for v in (x, y))
    shape = np.broadcast_shapes(test.shape, x.shape, y.shape)
    if 0 in shape:
        return empty(shape, to)
    r = recorder()
    chosen = r.op(graph.WhereOp, test.value(np.dtype(bool)), x.value(to), y.value(to))
    return fresh(r.expand(chosen, shape))


def _wrapped(number: Operand, to: np.dtype[Any]) -> Operand:
    """One of Python's integers as `np.where` converts it: what does not fit wraps."""
    if type(number.given) is not int or to.kind not in "iu":
        return number
    return operand(np.array(number.given % (1 << 8 * to.itemsize), f"u{to.itemsize}").view(to))


def repeat(x: Any, repeats: Any, axis: int | None = None) -> TracedArray:
    """`np.repeat`, of counts that are known."""
    array = array_of(x)
    if is_traced(repeats):
        raise refused("np.repeat of counts that are computed")
    rows = np.repeat(np.arange(size(array, axis)), repeats)
    return LIBRARY.take(array, rows, axis)


def pad(
    x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0, **rest: Any
) -> TracedArray:
    """`np.pad` with a number, or by repeating elements: modes edge, reflect, symmetric and wrap."""
    if rest:
        raise refused(f"np.pad with {', '.join(rest)}")
    array = array_of(x)
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    if mode == "constant":
        known = operand(constant_values)
        if known.shape != ():
            raise refused("np.pad with several constant_values")
        shape = [n + low + high for n, (low, high) in zip(array.shape, widths, strict=True)]
        # NumPy puts an array there, so that a number that the dtype has not is converted all the same.
        filler: Any = constant_values if is_traced(known.given) else np.asarray(constant_values)
        made = full_like(array, filler, shape=shape)
        keys = zip(array.shape, widths, strict=True)
        made[tuple(slice(low, low + n) for n, (low, _) in keys)] = array
        return made
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise refused(f"np.pad with mode='{mode}'")
    for axis, (low, high) in enumerate(widths):
        rows = np.pad(np.arange(array.shape[axis]), (low, high), cast(Any, mode))
        array = array_of(LIBRARY.take(array, rows, axis))
    return array


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """`np.copyto`"""
    target, source = output_of(dst), operand(src)
    assert target is not None
    kind: Any = source.kind
    if kind not in WEAK and not np.can_cast(kind, target.dtype, cast(Any, casting)):
        raise TypeError(f"Cannot cast array data from {kind!r} to {target.dtype!r}")
    store(source.value(target.dtype), target, where)


def like(fill: Any) -> Callable[..., TracedArray]:
    """`np.zeros_like` and `np.ones_like`; None for `np.empty_like`."""

    def made(
        x: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> TracedArray:
        return full_like(x, fill, dtype, order, subok, shape)

    return made


def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> TracedArray:
    """`np.full_like`; without a value, of no contents."""
    known = operand(x)
    own = np.dtype(known.kind)
    layout: Array = known.given.spot.layout if is_traced(known.given) else np.empty(known.shape)
    shadow = np.empty_like(layout, dtype=own, order=cast(Any, order), shape=shape)
    fortran = shadow.flags.f_contiguous and not shadow.flags.c_contiguous
    made = empty(shadow.shape, np.dtype(dtype) if dtype is not None else own, fortran)
    if fill_value is not None:
        made[...] = fill_value
    return made


def result_type(*given: Any) -> np.dtype[Any]:
    """`np.result_type`"""
    return promoted([operand(g) if _numeric(g) else Operand(g, g, ()) for g in given])


def _numeric(given: Any) -> bool:
    return not isinstance(given, str | np.dtype | type) or is_traced(given)


def _triangle(n: int, m: int, k: int, upper: bool) -> Array:
    """Where a triangle of an n×m matrix is, the `k`-th diagonal included."""
    whole = np.ones((n, m), bool)
    return np.triu(whole, k) if upper else np.tril(whole, k)


def triangle(upper: bool) -> Callable[..., Any]:
    """`np.triu` and `np.tril`"""

    def kept(m: Any, k: int = 0) -> Any:
        array = array_of(m)
        # NumPy makes a matrix of a row: the row as often as it has elements.
        rows, columns = array.shape[-2:] if array.ndim > 1 else 2 * array.shape
        inside = _triangle(rows, columns, k, upper)
        return where(inside, array, np.zeros(1, array.dtype))

    return kept


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TracedArray:
    """`np.diagonal`: a view that cannot be written."""
    array = array_of(x)
    seen = array.spot.layout.diagonal(offset, axis1, axis2)
    seen.flags.writeable = False
    return TracedArray(array.spot.viewed(seen))


def traced_diagonal(
    x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """`np.trace`: the sum of a diagonal."""
    return LIBRARY.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype, out=output_of(out))


def diag(v: Any, k: int = 0) -> Any:
    """`np.diag`: the diagonal of a matrix, or a matrix of a diagonal."""
    array = array_of(v)
    if array.ndim == 2:
        return diagonal(array, k)
    extent = array.shape[0] + abs(k)
    made = full_like(array, 0, shape=(extent, extent))
    spot = made.spot
    along = np.lib.stride_tricks.as_strided(
        spot.layout.reshape(-1)[max(k, 0) + extent * max(-k, 0) :],
        array.shape,
        ((extent + 1) * array.itemsize,),
    )
    TracedArray(spot.viewed(along))[...] = array
    return made


def rounded(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """`np.round`, as NumPy does it: scaled, rounded to even, scaled back."""
    array = array_of(x)
    if array.dtype.kind == "c":
        result: Any = empty(array.shape, array.dtype)
        result.real, result.imag = rounded(array.real, decimals), rounded(array.imag, decimals)
    elif array.dtype.kind not in "bf":
        if decimals < 0:
            raise refused("np.round of whole numbers to tens")
        result = np.positive(array)
    elif decimals == 0:
        result = np.rint(array)
    else:
        scale = 10.0 ** abs(decimals)
        result = np.rint(array * scale) / scale if decimals > 0 else np.rint(array / scale) * scale
    target = output_of(out)
    return result if target is None else store(value_of(array_of(result)), target)
