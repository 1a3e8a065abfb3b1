"""What is done with a frame column by column. Each raises Unlike for what is not."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from irkit.annotations.frames import fixed_rows
from irkit.annotations.structures import of_kind
from irkit.frontends.numpy.arrays import is_traced, kind_of_table
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.tables.objects import HostObject, is_table, on_host
from irkit.frontends.numpy.tables.operators import OPERATORS, UNARY
from irkit.frontends.numpy.tables.reducing import REDUCTIONS
from irkit.frontends.numpy.tables.series import TracedSeries, is_series
from irkit.frontends.numpy.tables.unlike import Unlike


def is_frame(value: Any) -> bool:
    """Whether it is a frame in a trace, whose columns are known."""
    return kind_of_table(value) == "DataFrame"


def columnwise(frame: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A method of each column. Raises Unlike for arguments that are none of each, and for columns of which
    the host gives no rows."""
    each = [_of_column(frame, n, name, args, kwargs) for n in range(len(frame.columns))]
    return frame.like([_part(frame, s) for s in each])


def _of_column(
    frame: Any, number: int, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    label = frame.columns[number]
    own = frame.column(number)

    def picked(value: Any) -> Any:
        if is_frame(value):
            same = value.rows == frame.rows and value.columns.equals(frame.columns)
            if not same:
                raise Unlike
            return value.column(number)
        if of_kind(value, dict) and name in ("astype", "fillna", "round"):
            return value.get(label)
        # What has labels would be aligned with the names of columns.
        if of_kind(value, dict, list) or is_series(value) or is_table(value) or is_traced(value):
            raise Unlike
        return value

    given = [picked(a) for a in args]
    named = {k: picked(v) for k, v in kwargs.items()}
    left_out = any(of_kind(a, dict) and label not in a for a in (*args, *kwargs.values()))
    return own if left_out else getattr(own, name)(*given, **named)


def _part(frame: Any, made: Any) -> Any:
    if is_series(made):
        return made.array
    if type(made) is HostObject and made.known.rows == frame.rows:
        return made
    raise Unlike


def reduced(frame: Any, name: str, kwargs: Mapping[str, Any]) -> TracedSeries:
    """A reduction of each column. Raises Unlike where pandas makes another type of several."""
    rest = dict(kwargs)
    if rest.pop("axis", 0) not in (0, "index"):
        raise Unlike
    if rest.pop("numeric_only", False):
        frame = frame.chosen(_numeric(frame))
    series = [frame.column(n) for n in range(len(frame.columns))]
    if not series or rest or not all(is_series(s) and s.dtype.kind in "iuf" for s in series):
        raise Unlike
    if name in ("any", "all") or not len(frame):
        raise Unlike
    found = [REDUCTIONS[name](s.array) for s in series]
    types = {f.dtype for f in found}
    if len(types) > 1 and types != {np.dtype(np.float64), np.dtype(np.int64)}:
        raise Unlike
    # How many there are of integers is known, and no traced array.
    whole = array_of(LIBRARY.stack(found))
    return TracedSeries(whole, fixed_rows(frame.columns), None)


def _numeric(frame: Any) -> list[Hashable]:
    """Names of columns of numbers."""
    found: list[Hashable] = []
    for n, label in enumerate(frame.columns):
        own = frame.column(n)
        if is_series(own):
            found.append(label)
        elif str(own.known.dtype) not in ("str", "object", "category"):
            raise Unlike
    return found


def binary(name: str, left: Any, right: Any) -> Any:
    """Frames of the same rows and columns, or one and a number, column by column."""
    frame = left if is_frame(left) else right

    def column(value: Any, number: int) -> Any:
        if not is_frame(value):
            if type(value) not in (int, float) and not of_kind(value, np.generic):
                raise Unlike
            return value
        if value.rows != frame.rows or not value.columns.identical(frame.columns):
            raise Unlike
        return value.column(number)

    try:
        each = [
            OPERATORS[name](column(left, n), column(right, n)) for n in range(len(frame.columns))
        ]
        return frame.like([_part(frame, s) for s in each])
    except Unlike:
        return on_host(name, left, right)


def unary(name: str, frame: Any) -> Any:
    """Each column by an operator."""
    try:
        each = [UNARY[name](frame.column(n)) for n in range(len(frame.columns))]
        return frame.like([_part(frame, s) for s in each])
    except Unlike:
        return on_host(name, frame)
