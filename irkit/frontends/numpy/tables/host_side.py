"""What tasks of the host call beside pandas' own functions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def itself(value: Any) -> Any:
    """What it is given."""
    return value


def with_item(frame: Any, key: Any, value: Any) -> Any:
    """A frame with `frame[key] = value`."""
    made = frame.copy(deep=False)
    made[key] = value
    return made


def with_located(frame: Any, where: str, key: Any, value: Any) -> Any:
    """A frame with `frame.loc[key] = value`, or of another such attribute."""
    made = frame.copy(deep=False)
    getattr(made, where)[key] = value
    return made


def column_with(frame: Any, key: Hashable, value: Any) -> Any:
    """The column of a frame that something is assigned to."""
    return with_item(frame, key, value)[key]


def column_located(frame: Any, key: Any, value: Any) -> Any:
    """The column of `frame.loc[rows, column] = value`."""
    return with_located(frame, "loc", key, value)[key[1]]


def rows_of(series: Any, rows: slice) -> Any:
    """Rows by their places."""
    return series.iloc[rows]
