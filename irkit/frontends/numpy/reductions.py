"""Reductions, as NumPy has them: `axis`, `dtype`, `out`, `keepdims`, `initial`, `where`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from irkit.annotations.sorting import ARGSORT, SORT, is_long
from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.frontends.array_ops import reductions as composed
from irkit.frontends.numpy import accumulating
from irkit.frontends.numpy.arrays import TracedArray, fresh, value_of
from irkit.frontends.numpy.host_calls import host_call
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of, operand
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import Recorder, recorder
from irkit.frontends.numpy.records import Value
from irkit.frontends.numpy.ufunc_calls import output_of, store

NO_VALUE: Any = vars(np)["_NoValue"]
"""What NumPy has where an argument was not given."""

KINDS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_or": "any",
    "logical_and": "all",
}
"""Universal function → what its `reduce` is."""
OF_TRUTHS = {"sum": "any", "max": "any", "prod": "all", "min": "all"}
"""What a reduction in the dtype of truths is."""
COMBINED: dict[str, type[GraphOp]] = {
    "sum": graph.AddOp,
    "prod": graph.MulOp,
    "max": graph.MaxOp,
    "min": graph.MinOp,
    "any": graph.MaxOp,
    "all": graph.MinOp,
}
"""What two results of a reduction combine by; truths are 0 and 1."""


def ufunc_reduce(
    ufunc: np.ufunc,
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Any:
    """`ufunc.reduce`. Raises UnsupportedError for one that irkit has none of."""
    kind = KINDS.get(ufunc.__name__)
    if kind is None:
        if initial is not NO_VALUE or where is not True:
            raise refused(f"{ufunc.__name__}.reduce with initial= or where=")
        return accumulating.reduce(ufunc, x, axis, dtype, out, bool(keepdims))
    return reduce(kind, x, axis, dtype, out, keepdims, initial, where)


def reduce(
    kind: str,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Any:
    """A reduction of `kind` (sum, prod, max, min, any, all) over `axis`, None for all axes."""
    array = array_of(x)
    axes = _axes(axis, array.ndim)
    accumulated = _dtype(kind, array.dtype, dtype)
    has_initial = initial is not NO_VALUE and initial is not None
    has_mask = where is not True and where is not NO_VALUE
    if not has_initial and kind in ("max", "min"):
        _check_neutral(kind, [array.shape[a] for a in axes], has_mask)
    kind = OF_TRUTHS.get(kind, kind) if accumulated.kind == "b" else kind
    r = recorder()
    value = truth_or_cast(r, kind, array, accumulated)
    first = None
    if has_initial:
        given = operand(initial).value(accumulated)
        first = r.cast(given, value.dtype)
    if has_mask:
        mask = r.expand(operand(where).value(np.dtype(bool)), array.shape)
        value = r.op(graph.WhereOp, mask, value, _neutral(r, kind, value.dtype, first))
    result = _reduced(r, kind, value, axes, bool(keepdims) and keepdims is not NO_VALUE)
    if first is not None:
        result = r.op(COMBINED[kind], result, first)
    result = r.cast(result, accumulated)
    target = output_of(out)
    return fresh(result, scalar=True) if target is None else store(result, target)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that are meant, None for all. A number has none, but takes 0 and -1 for one."""
    if axis is None or (rank == 0 and axis in (0, -1)):
        return tuple(range(rank))
    return normalize_axis_tuple(axis, rank)


def truth_or_cast(r: Recorder, kind: str, array: TracedArray, dtype: np.dtype[Any]) -> Value:
    """The elements in the dtype that is reduced: of truths, 0 and 1 in bytes."""
    value = value_of(array)
    if kind in ("any", "all"):
        return r.cast(r.cast(value, np.dtype(bool)), np.dtype(np.uint8))
    return r.cast(value, np.dtype(np.uint8) if dtype.kind == "b" else dtype)


def _reduced(r: Recorder, kind: str, value: Value, axes: Sequence[int], keepdims: bool) -> Value:
    if not axes:
        return value
    name = {"any": "max", "all": "min"}.get(kind, kind)
    if name in ("max", "min") and value.dtype == np.uint8 and kind in ("any", "all"):
        full = 0 in [value.shape[a] for a in axes]
        if full:
            sizes = [1 if d in axes else s for d, s in enumerate(value.shape)]
            shape = [s for d, s in enumerate(sizes) if d not in axes or keepdims]
            return r.splat(kind == "all", value.dtype, shape)
    return r.op(graph.ReduceOp, value, kind=name, axes=sorted(axes), keepdims=keepdims)


def count_nonzero(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """`np.count_nonzero`"""
    return reduce("sum", array_of(x).astype(bool), axis, np.int64, None, keepdims)


def _dtype(kind: str, own: np.dtype[Any], asked: Any) -> np.dtype[Any]:
    """In which dtype NumPy sums, multiplies or compares."""
    if kind in ("any", "all"):
        return np.dtype(bool)
    if kind in ("max", "min"):
        return np.dtype(asked) if asked is not None else own
    probe: Any = np.ones(1, own)
    return (np.add if kind == "sum" else np.multiply).reduce(probe, dtype=asked).dtype


def _check_neutral(kind: str, extents: Sequence[int], has_mask: bool) -> None:
    """Of no elements there is no largest."""
    if has_mask:
        raise refused(f"{kind} with where= and no initial=")
    if 0 in extents:
        raise ValueError(f"zero-size array to reduction operation {kind}imum which has no identity")


def _neutral(r: Recorder, kind: str, dtype: np.dtype[Any], first: Value | None) -> Value:
    """What leaves the others as they are."""
    fixed = {"sum": 0, "prod": 1, "any": 0, "all": 1}
    if kind in fixed:
        return r.constant(np.array(fixed[kind], dtype))
    assert first is not None
    return first


def ufunc_accumulate(
    ufunc: np.ufunc, x: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """`ufunc.accumulate`."""
    running = {"add": cumsum, "multiply": cumprod}.get(ufunc.__name__)
    if running is None:
        return accumulating.accumulate(ufunc, x, axis, dtype, out)
    return running(x, axis, dtype, out)


def cumsum(x: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums along an axis, None for all elements in C order."""
    array, place = _flat(x, axis)
    r = recorder()
    to = _dtype("sum", array.dtype, dtype)
    result = composed.cumsum(r.compose, r.cast(value_of(array), to), place)
    target = output_of(out)
    return fresh(result) if target is None else store(result, target)


def mean(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """Arithmetic mean: the sum, in float64 of integers, over how many there are."""
    array = array_of(x)
    if dtype is None:
        dtype = np.dtype(np.float64) if array.dtype.kind in "biu" else array.dtype
    wide = np.dtype(np.float32) if dtype == np.float16 else np.dtype(dtype)
    total = reduce("sum", array, axis, wide, None, keepdims, where=where)
    result = (total / _count(array, axis, keepdims, where)).astype(dtype)
    target = output_of(out)
    return result if target is None else store(value_of(result), target)


def _count(array: TracedArray, axis: Any, keepdims: Any, where: Any) -> Any:
    """How many elements a mean is of."""
    if where is not True and where is not NO_VALUE:
        return reduce("sum", np.broadcast_to(where, array.shape), axis, np.int64, None, keepdims)
    axes = range(array.ndim) if axis is None else normalize_axis_tuple(axis, array.ndim)
    count = 1
    for a in axes:
        count *= array.shape[a]
    return count


def var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    """Variance: the mean of squared distances to the mean, over `n - ddof`."""
    array = array_of(x)
    if correction is not NO_VALUE:
        ddof = correction
    if array.dtype.kind in "biu" and dtype is None:
        array = array.astype(np.float64)
    centre = _mean(array, axis, dtype, None, True, where=where) if mean is NO_VALUE else mean
    off = array - centre
    is_complex = array.dtype.kind == "c"
    squares = off.real * off.real + off.imag * off.imag if is_complex else off * off
    total = reduce("sum", squares, axis, dtype, None, keepdims, where=where)
    count = _count(array, axis, keepdims, where)
    rest = np.maximum(count - ddof, 0)
    result = (total / (rest if isinstance(count, TracedArray) else int(rest))).astype(
        dtype if dtype is not None else array.real.dtype
    )
    target = output_of(out)
    return result if target is None else store(value_of(result), target)


_mean = mean


def std(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, **rest: Any
) -> Any:
    """Square root of the variance; of numbers that are all alike the derivative is 0, not the root's."""
    squares: Any = var(x, axis, dtype, None, ddof, **rest)
    some = squares > 0
    root = np.sqrt(LIBRARY.where(some, squares, squares.dtype.type(1)))
    result = LIBRARY.where(some, root, squares)[()]
    target = output_of(out)
    return result if target is None else store(value_of(array_of(result)), target)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products along an axis, None for all elements in C order."""
    array, place = _flat(x, axis)
    to = _dtype("prod", array.dtype, dtype)
    return accumulating.accumulate(np.multiply, array, place, to, out)


def sort(x: Any, axis: int | None = -1, kind: Any = None, order: Any = None, **rest: Any) -> Any:
    """`np.sort`: ascending, NaN last."""
    if axis is not None:
        normalize_axis_index(axis, array_of(x).ndim)
    array, place = _flat(x, axis)
    r = recorder()
    if is_long(array.shape[place]) and not r.differentiated:
        return host_call(SORT, (array, place, kind), {})
    return fresh(composed.sort(r.compose, value_of(array), place))


def argsort(x: Any, axis: int | None = -1, kind: Any = None, order: Any = None, **rest: Any) -> Any:
    """`np.argsort`, stable."""
    array, place = _flat(x, axis)
    r = recorder()
    if is_long(array.shape[place]) and not r.differentiated:
        own = "stable" if rest.get("stable") else kind
        return host_call(ARGSORT, (array, place, own), {})
    return fresh(composed.argsort(r.compose, value_of(array), place))


def _flat(x: Any, axis: int | None) -> tuple[TracedArray, int]:
    """An array and one of its axes; for None its elements in C order."""
    array = array_of(x)
    if axis is None or array.ndim == 0:
        row = array_of(LIBRARY.ravel(array))
        return row, normalize_axis_index(axis or 0, row.ndim)
    return array, normalize_axis_index(axis, array.ndim)


def _arg(of: Callable[..., Any]) -> Callable[..., Any]:
    def arg(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Index of the first largest (smallest) element; NaN comes before all."""
        array, place = _flat(x, axis)
        keep = bool(keepdims) and keepdims is not NO_VALUE
        r = recorder()
        rank = array_of(x).ndim
        is_flat = axis is None or rank == 0
        result = of(r.compose, value_of(array), place, keep and not is_flat)
        if keep and is_flat:
            result = r.reshape(result, (1,) * rank)
        target = output_of(out)
        return fresh(result, scalar=True) if target is None else store(result, target)

    return arg


argmax, argmin = _arg(composed.argmax), _arg(composed.argmin)


def of_kind(kind: str) -> Callable[..., Any]:
    """`np.sum` and its like, with arguments in NumPy's order."""

    def extreme(
        x: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NO_VALUE,
        where: Any = True,
    ) -> Any:
        return reduce(kind, x, axis, None, out, keepdims, initial, where)

    def truth(
        x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Any:
        return reduce(kind, x, axis, None, out, keepdims, NO_VALUE, where)

    def total(
        x: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NO_VALUE,
        where: Any = True,
    ) -> Any:
        return reduce(kind, x, axis, dtype, out, keepdims, initial, where)

    others = {"max": extreme, "min": extreme, "any": truth, "all": truth}
    return others.get(kind, total)
