"""`np.clip`."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.dialects.graph import ClipOp
from irkit.frontends.numpy.arrays import TracedArray, fresh, value_of
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.ufunc_calls import output_of, store


def clip(x: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **rest: Any) -> Any:
    """`np.clip`: no less than one limit and no more than the other."""
    low, high = rest.pop("min", a_min), rest.pop("max", a_max)
    array: Any = array_of(x)
    if array.dtype.name == "bfloat16" and low is not None and high is not None:
        # NumPy has no clip of both limits for them, and takes the one for what holds them.
        array = array.astype(np.float32)
    if array.dtype.kind in "iu":
        # A limit of Python's that no element reaches is none, and need not be of the dtype.
        range_of = np.iinfo(array.dtype)
        low = None if type(low) is int and low <= range_of.min else low
        high = None if type(high) is int and high >= range_of.max else high
    known = not rest and all(
        limit is None or _is_known(limit, array.dtype) for limit in (low, high)
    )
    if low is None and high is None:
        result = np.positive(array)
    elif known:
        result = _between(array, low, high)
    else:
        # Between two limits that are one number each a zero keeps its sign, else it has that of the limit.
        kept = all(limit is not None and np.size(limit) == 1 for limit in (low, high))
        result = array if low is None else _limited(np.maximum, array, low, kept, rest)
        result = result if high is None else _limited(np.minimum, result, high, kept, rest)
    target = output_of(out)
    return result if target is None else store(value_of(array_of(result)), target)


def _limited(ufunc: Any, x: Any, limit: Any, kept: bool, rest: dict[str, Any]) -> Any:
    """`ufunc` of both; `kept`: of equal ones x, which NumPy takes where it is the second, of float16 the
    first."""
    first = kept and x.dtype != np.float16
    return ufunc(limit, x, **rest) if first else ufunc(x, limit, **rest)


def _is_known(limit: Any, dtype: np.dtype[Any]) -> bool:
    """Whether it is a number, and of the dtype: floats then stay what they are."""
    own = type(limit) in (int, float, dtype.type)
    return dtype.kind == "f" and own and bool(abs(limit) <= np.finfo(dtype).max)


def _between(array: TracedArray, low: Any, high: Any) -> Any:
    """One op, which has the slope 1 at its limits, where `maximum` and `minimum` have one half."""
    least = -np.inf if low is None else float(low)
    most = np.inf if high is None else float(high)
    result = fresh(recorder().op(ClipOp, value_of(array), min=least, max=most), scalar=True)
    limits = [limit for limit in (low, high) if limit is not None]
    if len(limits) == 2 or limits[0] != 0 or array.dtype == np.float16:
        return result
    # NumPy takes the one limit, whatever sign zero has.
    return -(-result + 0.0) if np.signbit(limits[0]) else result + 0.0
