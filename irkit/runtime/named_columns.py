"""Rows whose columns have names and semantics, as YDF takes them: data frames, and mappings from names.

Conversions are YDF's own (`ydf/dataset/dataset.py`): numbers are rounded to float32, categories are words of
a dictionary, of which the first is for what is in none, and no word, or none at all, is a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo, Semantic, is_pandas_na
from irkit.runtime.data_frames import is_data_frame
from irkit.weights import Array


def named_rows_of(info: ModelInfo, value: Any) -> Any:
    """A data frame or a mapping as rows×columns of float32: numbers, 0 and 1, and numbers of categories, NaN
    for what is missing. Anything else as it is.

    Raises InvalidInputError if a column is not there, or holds what it cannot.
    """
    if isinstance(value, Mapping):
        given = _unrolled(cast(Mapping[Any, Any], value))
    elif is_data_frame(value):
        given = _of_frame(value)
    else:
        return value
    names = info.columns or ()
    if missing := [name for name in names if name not in given]:
        known = f"; it has {', '.join(map(repr, given))}" if given else ""
        raise InvalidInputError(f"the rows lack columns {', '.join(map(repr, missing))}{known}")
    columns = [
        _column(f"column '{name}'", semantic, given[name])
        for name, semantic in zip(names, info.semantics, strict=True)
    ]
    if len(lengths := sorted({len(c) for c in columns})) > 1:
        raise InvalidInputError(f"columns disagree on the number of rows: {lengths}")
    return np.stack(columns, axis=1)


def _of_frame(value: Any) -> dict[Any, Any]:
    names = list(value.columns)
    if len(set(names)) != len(names):
        raise InvalidInputError("the data frame has several columns of one name")
    return {name: value[name] for name in names}


def _unrolled(given: Mapping[Any, Any]) -> dict[Any, Any]:
    """Columns of columns, rows×n, as n columns that are named as YDF names them."""
    found: dict[Any, Any] = {}
    for name, column in given.items():
        wide = cast(Array, column) if isinstance(column, np.ndarray) else None
        if wide is None or wide.ndim != 2 or not wide.shape[1]:
            found[name] = column
            continue
        count = wide.shape[1]
        for number in range(count):
            found[f"{name}.{number:0{len(str(count))}}_of_{count}"] = wide[:, number]
    return found


def _column(what: str, semantic: Semantic, column: Any) -> Array:
    kind, count, words = semantic
    array = _array(what, column)
    match kind:
        case "number":
            return _numbers(what, array)
        case "truth":
            if array.dtype.kind != "b" and len(array):
                raise InvalidInputError(f"{what}: expected True and False, got dtype {array.dtype}")
            return array.astype(np.float32)
        case "index":
            return _indices(what, array, count)
        case "category":
            return _places(what, array, words)


def _array(what: str, column: Any) -> Array:
    try:
        array: Array = np.asarray(column)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{what} is no array: {error}") from None
    if array.ndim != 1:
        raise InvalidInputError(f"{what}: expected one dimension, got shape {array.shape}")
    return array


def _numbers(what: str, array: Array) -> Array:
    if array.dtype.kind not in "biufOUST":
        raise InvalidInputError(f"{what}: expected numbers, got dtype {array.dtype}")
    if array.dtype.kind == "O":
        array = np.array([np.nan if is_pandas_na(v) else v for v in array.tolist()], object)
    try:
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{what}: expected numbers: {error}") from None


def _indices(what: str, array: Array, count: int) -> Array:
    """Numbers of categories, of which -1 is missing. YDF's answers for what is beyond them hang on how they
    lie in memory."""
    if array.dtype.kind not in "iu" and len(array):
        raise InvalidInputError(f"{what}: expected integers, got dtype {array.dtype}")
    if len(array) and not -1 <= array.min() <= array.max() < count:
        wrong = array.min() if array.min() < -1 else array.max()
        raise InvalidInputError(
            f"{what} has category {wrong}: expected 0 to {count - 1}, or -1 for a missing one"
        )
    found = array.astype(np.float32)
    return np.where(found < 0, np.float32(np.nan), found)


class _Numbers(dict[Any, float]):
    """The number of each word; of any other value, as YDF spells it."""

    def __missing__(self, value: Any) -> float:
        if value is None or is_pandas_na(value) or (isinstance(value, float) and value != value):
            return np.nan
        # NumPy's bytes, of which YDF's columns are made, do not keep zeros at the end.
        spelled = _spelled(value).rstrip("\0")
        return self.get(spelled, 0.0) if spelled else np.nan


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise InvalidInputError(f"{type(value).__name__} is neither a string nor an integer")


def _places(what: str, array: Array, words: tuple[str, ...]) -> Array:
    """Numbers of words. Raises InvalidInputError for values that are no words."""
    if array.dtype.kind not in "biuOUST" and len(array):
        raise InvalidInputError(
            f"{what}: expected strings or integers as categories, got dtype {array.dtype}"
        )
    table = _Numbers((word, float(number)) for number, word in enumerate(words) if word)
    try:
        found = list(map(table.__getitem__, cast(list[Any], array.tolist())))
    except (InvalidInputError, TypeError) as error:
        raise InvalidInputError(f"{what}: {error}") from None
    return np.array(found, np.float32)
