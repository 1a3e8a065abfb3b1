"""Inputs with columns of strings as arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.data_frames import fitted_columns, is_data_frame
from irkit.runtime.hashed_columns import hashed_rows
from irkit.runtime.strings import places
from irkit.weights import Array


def numbered(info: ModelInfo, value: Any, skipped: frozenset[int] = frozenset()) -> Array:
    """A data frame, or rows×columns of strings or objects, as rows×columns of float32 or float64.

    Columns that are `skipped`, or that the model never looks at, are 0. Raises InvalidInputError if a column
    of strings has none, or another has no numbers.
    """
    if info.hashed:
        return hashed_rows(info, value)
    if is_data_frame(value):
        return fitted_columns(info, value)
    rows: Any = np.asarray(value)
    if rows.ndim != 2 or rows.dtype.kind not in "OUT":
        raise InvalidInputError(
            "the model has columns of strings: expected rows of objects, "
            f"got {rows.dtype} of shape {rows.shape}"
        )
    words, skipped = dict(info.words), skipped | set(info.unread)
    last = max({*words, *skipped})
    if rows.shape[1] <= last:
        raise InvalidInputError(f"expected more than {last} columns, got {rows.shape[1]}")
    made = np.empty(rows.shape, np.float64)
    for column in range(rows.shape[1]):
        if column in words:
            known, missing = words[column], column in info.na_words
            made[:, column] = places(f"column {column}", rows[:, column], known, missing)
        elif column in skipped:
            made[:, column] = 0
        else:
            made[:, column] = _numbers(column, rows[:, column])
    return made


def named(info: ModelInfo, value: Any) -> Array:
    """Labels that are strings, one a row, as float64. Raises InvalidInputError for what are none."""
    labels: Any = np.asarray(value)
    if labels.ndim == 2 and labels.shape[1] == 1:
        # As scikit-learn takes a column of them.
        labels = labels.reshape(-1)
    if any(label is None for label in labels.reshape(-1).tolist()):
        raise InvalidInputError("labels: None among them")
    ((_, words),) = info.words
    return places("labels", labels, words)


def _numbers(column: int, values: Any) -> Array:
    if values.dtype.kind != "O":
        raise InvalidInputError(f"column {column}: expected numbers, got strings")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"column {column}: expected numbers: {error}") from None
