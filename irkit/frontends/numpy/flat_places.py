"""Functions of NumPy about places in C order: of elements of a shape, and of a diagonal."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.arrays import TracedArray, fresh, is_traced
from irkit.frontends.numpy.operands import operand
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.writing import check_writeable

INT64 = np.dtype(np.int64)


def unravel_index(*args: Any, **kwargs: Any) -> Any:
    """`np.unravel_index`: the index along each dimension of elements that are counted in C order, or in that
    of Fortran. Of indices outside of the shape a call raises ValueError."""
    from irkit.frontends.numpy.foreign import opaque

    given: dict[str, Any] = {
        "order": "C",
        **dict(zip(("indices", "shape", "order"), args, strict=False)),
        **kwargs,
    }
    indices, order, extents = given["indices"], given["order"], _extents(given["shape"])
    integer = is_traced(indices) and indices.dtype.kind in "iu"
    if not integer or not extents or 0 in extents or order not in ("C", "F"):
        why = "irkit has no form of numpy.unravel_index with these arguments"
        return opaque(np.unravel_index, why, args, kwargs)
    places = operand(indices).value(INT64)
    recorder().within(places, math.prod(extents), 0, ValueError)
    rest: Any = fresh(places, scalar=indices.ndim == 0)
    found: list[Any] = []
    for extent in reversed(extents) if order == "C" else extents:
        rest, index = rest // extent, rest % extent
        found.append(index)
    return tuple(reversed(found)) if order == "C" else tuple(found)


def _extents(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, Sequence):
        return tuple(map(operator.index, cast("Sequence[Any]", shape)))
    return (operator.index(shape),)


def fill_diagonal(*args: Any, **kwargs: Any) -> None:
    """`np.fill_diagonal`: a view of the diagonal is written."""
    from irkit.frontends.numpy.foreign import opaque

    given: dict[str, Any] = {
        "wrap": False,
        **dict(zip(("a", "val", "wrap"), args, strict=False)),
        **kwargs,
    }
    a, val, wrap = given["a"], given["val"], given["wrap"]
    single = is_traced(a) and (val.ndim if is_traced(val) else np.ndim(val)) == 0
    if not single or wrap or a.ndim < 2 or (a.ndim > 2 and len({*a.shape}) > 1) or 0 in a.shape:
        why = "irkit has no form of numpy.fill_diagonal with these arguments"
        opaque(np.fill_diagonal, why, args, kwargs)
        return
    check_writeable(a, "assignment destination is read-only")
    layout = a.spot.layout
    along = np.lib.stride_tricks.as_strided(layout, (min(a.shape),), (sum(layout.strides),))
    TracedArray(a.spot.viewed(along))[...] = val
