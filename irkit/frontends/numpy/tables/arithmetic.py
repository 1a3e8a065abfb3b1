"""Operators on series: compiled where pandas computes as NumPy does, whatever the values are."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from irkit.annotations.structures import of_kind
from irkit.frontends.numpy.arrays import fresh, is_traced, value_of
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.tables.objects import is_table, on_host
from irkit.frontends.numpy.tables.operators import COMPARISONS, OPERATORS, UNARY


def binary(name: str, left: Any, right: Any) -> Any:
    """`left` and `right` by an operator; one of them is a series. What pandas does otherwise than NumPy for
    some values (integers by 0, booleans that are added) is the host's."""
    from irkit.frontends.numpy.tables.frame import TracedFrame
    from irkit.frontends.numpy.tables.series import is_series

    if type(left) is TracedFrame or type(right) is TracedFrame:
        return NotImplemented
    series = left if is_series(left) else right
    a, b = (values_beside(series, x) for x in (left, right))
    if a is None or b is None or not _as_numpy(name, a, b):
        return on_host(name, left, right)
    names = {x.name for x in (left, right) if is_series(x)}
    return series.like(OPERATORS[name](a, b), names.pop() if len(names) == 1 else None)


def unary(name: str, series: Any) -> Any:
    """A series by an operator of one operand."""
    kind = series.dtype.kind
    if (name == "invert" and kind == "f") or (name != "invert" and kind == "b"):
        return on_host(name, series)
    return series.like(UNARY[name](series.array))


def values_beside(series: Any, value: Any) -> Any:
    """What stands for a value beside an array: the elements of a series of the same rows, a number; None of
    what has to be aligned or is of the host."""
    from irkit.frontends.numpy.tables.series import is_series

    if is_series(value):
        return value.array if value.rows == series.rows else None
    if is_table(value):
        return None
    if is_traced(value):
        return _weak(value) if value.ndim == 0 else value if value.shape == series.shape else None
    value = plain_number(value)
    return value if isinstance(value, Index) or type(value) in (int, float) else None


def _weak(value: Any) -> Any:
    """A number that is computed: for pandas it is one of Python's, whose type has no say."""
    kind = {"i": int, "f": float}.get(value.dtype.kind)
    if kind is None:
        return None
    made = recorder().cast(value_of(value), np.dtype(kind))
    return fresh(made, scalar=True, weak=kind)


def plain_number(value: Any) -> Any:
    """A number of NumPy's, or an array of one, as Python's, as which pandas takes it; others as they are."""
    number = of_kind(value, np.generic) or (type(value) is np.ndarray and value.ndim == 0)
    return value.item() if number and value.dtype.kind in "biuf" else value


def _as_numpy(name: str, a: Any, b: Any) -> bool:
    """Whether NumPy's result is pandas's, for all values."""
    kinds = {_kind(a), _kind(b)}
    if name in COMPARISONS:
        return True
    if name in ("and", "or", "xor"):
        return kinds == {"b"}
    if "b" in kinds or name == "matmul":
        return False
    if name in ("add", "sub", "mul", "truediv"):
        return True
    if name == "floordiv":
        # Of 32 bits it is of 64 where a divisor is 0.
        return (kinds == {"f"} and np.float64 in (_dtype(a), _dtype(b))) or _known_divisor(b)
    if name == "mod":
        return kinds == {"f"} or _known_divisor(b)
    return name == "pow" and _kind(a) == "f"


def _kind(value: Any) -> str:
    return "i" if isinstance(value, Index) else (_dtype(value) or np.dtype(_number(value))).kind


def _number(value: Any) -> Any:
    """The type of one of Python's numbers, which may be computed."""
    return value.spot.weak if is_traced(value) else cast(Any, type(value))


def _dtype(value: Any) -> np.dtype[Any] | None:
    """Of an array; a number has no say."""
    weak = is_traced(value) and value.spot.weak is not None
    return None if weak else getattr(value, "dtype", None)


def _known_divisor(value: Any) -> bool:
    """A number that is not 0."""
    return type(value) in (int, float) and value != 0 and value == value
