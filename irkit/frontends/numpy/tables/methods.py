"""Methods of series that are compiled, each a function of the series and its arguments.

They raise `Unlike` for what pandas computes in another way, or where the type of the result hangs on values:
such a call is the host's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.annotations.structures import of_kind
from irkit.frontends.numpy.arrays import is_traced
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.tables import reducing
from irkit.frontends.numpy.tables.arithmetic import plain_number
from irkit.frontends.numpy.tables.operators import OPERATORS
from irkit.frontends.numpy.tables.results import compiled_dtype
from irkit.frontends.numpy.tables.unlike import Unlike

ENTRIES = 32
"""Entries of a dict that a map is a chain of choices for."""
EXACT = 2.0**53


def is_missing(series: Any) -> Any:
    """`isna`."""
    return series.like(_missing(series.array))


def is_there(series: Any) -> Any:
    """`notna`."""
    return series.like(~_missing(series.array))


def _missing(x: Any) -> Any:
    return LIBRARY.isnan(x) if x.dtype.kind == "f" else LIBRARY.zeros_like(x, dtype=bool)


def where(series: Any, condition: Any, other: Any = math.nan) -> Any:
    """Elements where a condition holds, else another value of the same type."""
    return series.like(
        LIBRARY.where(_condition(series, condition), series.array, _of_type(series, other))
    )


def mask(series: Any, condition: Any, other: Any = math.nan) -> Any:
    """Elements where a condition does not hold, else another value."""
    return series.like(
        LIBRARY.where(_condition(series, condition), _of_type(series, other), series.array)
    )


def _condition(series: Any, condition: Any) -> Any:
    from irkit.frontends.numpy.tables.series import is_series

    if is_series(condition):
        if condition.rows != series.rows:
            raise Unlike
        condition = condition.array
    if not is_traced(condition) or condition.dtype != bool or condition.shape != series.shape:
        raise Unlike
    return condition


def _of_type(series: Any, value: Any) -> Any:
    """A value that a series of this type can hold without becoming one of another."""
    from irkit.frontends.numpy.tables.series import is_series

    dtype = series.dtype
    if is_series(value):
        same = value.rows == series.rows and value.dtype == dtype
        wide = dtype == np.float64 and value.rows == series.rows and value.dtype.kind in "iuf"
        if not same and not wide:
            raise Unlike
        return value.array.astype(dtype)
    if is_traced(value):
        if value.dtype != dtype or value.shape not in ((), series.shape):
            raise Unlike
        return value
    value = plain_number(value)
    if not _fits(dtype, value):
        raise Unlike
    return np.array(value, dtype)[()]


def _fits(dtype: np.dtype[Any], value: Any) -> bool:
    if dtype.kind == "b":
        return isinstance(value, bool | np.bool_)
    if isinstance(value, bool | np.bool_):
        return False
    if dtype.kind == "f":
        if isinstance(value, int) and abs(value) > EXACT:
            return False
        with np.errstate(all="ignore"):
            plain = isinstance(value, int | float | np.float64)
            return plain and (dtype == np.float64 or _exact(dtype, float(value)))
    if not isinstance(value, int):
        return False
    limits = np.iinfo(dtype)
    return limits.min <= value <= limits.max


def _exact(dtype: np.dtype[Any], value: float) -> bool:
    return math.isnan(value) or float(dtype.type(value)) == value


def fill(series: Any, value: Any = None, **rest: Any) -> Any:
    """`fillna` by a value."""
    if rest or value is None or isinstance(value, dict):
        raise Unlike
    if series.dtype.kind != "f":
        return series.like(series.array)
    return mask(series, is_missing(series), value)


def clip(series: Any, lower: Any = None, upper: Any = None, **rest: Any) -> Any:
    """Between limits, which are numbers."""
    limits = [v for v in (lower, upper) if v is not None]
    if rest or not all(
        type(v) in (int, float) and v == v and _fits(series.dtype, v) for v in limits
    ):
        raise Unlike
    if lower is not None and upper is not None:
        lower, upper = min(lower, upper), max(lower, upper)
    x = series.array
    if series.dtype.kind == "b":
        raise Unlike
    if upper is not None:
        x = LIBRARY.where(x > upper, np.array(upper, x.dtype)[()], x)
    if lower is not None:
        x = LIBRARY.where(x < lower, np.array(lower, x.dtype)[()], x)
    return series.like(x)


def rounded(series: Any, decimals: Any = 0) -> Any:
    """`round`."""
    if type(decimals) is not int or series.dtype.kind != "f":
        raise Unlike
    return series.like(LIBRARY.round(series.array, decimals))


def cast(series: Any, dtype: Any = None, **rest: Any) -> Any:
    """`astype` among types of numbers; of floats to integers pandas looks at values first."""
    if rest or not of_kind(dtype, type, np.dtype, str) or dtype is str:
        raise Unlike
    try:
        to: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise Unlike from None
    if not compiled_dtype(to) or (series.dtype.kind == "f" and to.kind in "iu"):
        raise Unlike
    return series.like(series.array.astype(to))


def mapped(series: Any, entries: Any, **rest: Any) -> Any:
    """`map` by a dict from numbers to floats; what is no key is missing."""
    if rest or not _is_dict(entries) or not 0 < len(entries) <= ENTRIES:
        raise Unlike
    if not all(_is_key(series.dtype, k) and type(v) is float for k, v in entries.items()):
        raise Unlike
    x = series.array
    made = LIBRARY.full_like(x, math.nan, dtype=np.float64)
    for key, value in entries.items():
        made = LIBRARY.where(x == key, value, made)
    return series.like(made)


def replaced(series: Any, what: Any = None, value: Any = ..., **rest: Any) -> Any:
    """`replace` of numbers by others of the same type."""
    entries: Any = {what: value} if type(what) in (int, float) and value is not ... else what
    if rest or not _is_dict(entries) or not 0 < len(entries) <= ENTRIES:
        raise Unlike
    if value is not ... and entries is what:
        raise Unlike
    if not all(_is_key(series.dtype, k) and type(v) is type(k) for k, v in entries.items()):
        raise Unlike
    x = made = series.array
    for key, to in entries.items():
        if not _fits(series.dtype, to):
            raise Unlike
        made = LIBRARY.where(x == key, np.array(to, x.dtype)[()], made)
    return series.like(made)


def _is_dict(value: Any) -> bool:
    """A dict that has no value for other keys."""
    return type(value) is dict


def _is_key(dtype: np.dtype[Any], key: Any) -> bool:
    """A number that equals elements just where NumPy's comparison says so."""
    if dtype.kind == "f":
        plain = type(key) is float or (type(key) is int and abs(key) <= EXACT)
        return plain and key == key and (dtype == np.float64 or _exact(dtype, float(key)))
    return dtype.kind in "iu" and type(key) is int and _fits(dtype, key)


def among(series: Any, values: Any) -> Any:
    """`isin` a few numbers."""
    if not any(type(values) is t for t in (list, tuple, set)) or not 0 < len(values) <= ENTRIES:
        raise Unlike
    if not all(_is_key(series.dtype, v) for v in values):
        raise Unlike
    x = series.array
    made = LIBRARY.zeros_like(x, dtype=bool)
    for value in values:
        made = made | (x == value)
    return series.like(made)


def between(series: Any, left: Any, right: Any, inclusive: str = "both") -> Any:
    """Whether elements are between two numbers."""
    if not all(type(v) in (int, float) for v in (left, right)):
        raise Unlike
    low = series >= left if inclusive in ("both", "left") else series > left
    high = series <= right if inclusive in ("both", "right") else series < right
    return low & high


def absolute(series: Any) -> Any:
    """`abs`."""
    return abs(series)


def operation(name: str) -> Callable[..., Any]:
    """A method that is an operator where nothing is to be filled in."""

    def method(series: Any, other: Any, **rest: Any) -> Any:
        if rest:
            raise Unlike
        return OPERATORS[name](series, other)

    return method


def head(series: Any, n: int = 5) -> Any:
    """The first rows."""
    return part(series, slice(None, n))


def tail(series: Any, n: int = 5) -> Any:
    """The last rows."""
    return part(series, slice(-n if n else len(series), None))


def part(series: Any, rows: slice) -> Any:
    """Rows by their places."""
    made = type(series)(series.array[rows], series.rows.part(rows), series.name)
    return made


def elements(series: Any, dtype: Any = None, copy: bool = False, **rest: Any) -> Any:
    """`to_numpy`."""
    if rest:
        raise Unlike
    if dtype is not None:
        return cast(series, dtype).array.copy()
    return series.array.copy() if copy else series.values


def copied(series: Any, deep: bool = True) -> Any:
    """`copy`: nobody writes the array."""
    return series.like(series.array)


def renamed(series: Any, index: Any = None, **rest: Any) -> Any:
    """`rename` to a name."""
    if rest or not isinstance(index, str | None):
        raise Unlike
    return series.like(series.array, index)


METHODS: Mapping[str, Callable[..., Any]] = {
    "abs": absolute,
    "astype": cast,
    "between": between,
    "clip": clip,
    "copy": copied,
    "fillna": fill,
    "head": head,
    "isin": among,
    "isna": is_missing,
    "isnull": is_missing,
    "map": mapped,
    "mask": mask,
    "notna": is_there,
    "notnull": is_there,
    "part": part,
    "rename": renamed,
    "replace": replaced,
    "round": rounded,
    "tail": tail,
    "to_numpy": elements,
    "where": where,
    **{
        name: operation(own)
        for name, own in {
            **{n: n for n in OPERATORS if n not in ("and", "or", "xor", "matmul")},
            "div": "truediv",
            "divide": "truediv",
            "multiply": "mul",
            "subtract": "sub",
        }.items()
    },
    **reducing.METHODS,
}
"""Name of a method → what it is of a traced series."""

__all__ = ["METHODS", "Unlike"]
