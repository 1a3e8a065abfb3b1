"""Rows with categories as arrays of numbers: CatBoost's hashes of the categories beside the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.category_hash import category_hash
from irkit.runtime.coded_columns import is_coded
from irkit.runtime.data_frames import column_of_numbers, is_data_frame, picked_columns
from irkit.weights import Array

_INTEGERS: tuple[type[Any], ...] = (int, np.integer, np.bool_)
_CATEGORIES = (str, bytes, *_INTEGERS)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def hashed_rows(info: ModelInfo, value: Any) -> Array:
    """A data frame, or rows×columns of strings, integers or objects, as rows×columns of float64: hashes in
    the columns that are `hashed`, numbers rounded to float32 in the others.

    Raises InvalidInputError for categories that are neither strings nor integers, as CatBoost does, and for
    other columns that hold no numbers.
    """
    hashed = frozenset(info.hashed)
    if is_data_frame(value):
        wanted = picked_columns(info, list(value.columns))
        made = [
            _hashes(f"column '{name}'", value[name]) if c in hashed else _of_frame(value, name)
            for c, name in enumerate(wanted)
        ]
        return np.stack(made, axis=1)
    rows = _rows(value)
    if rows.shape[1] <= max(hashed):
        raise InvalidInputError(f"expected more than {max(hashed)} columns, got {rows.shape[1]}")
    parts = [
        _hashes(f"column {c}", rows[:, c]) if c in hashed else _numbers(f"column {c}", rows[:, c])
        for c in range(rows.shape[1])
    ]
    return np.stack(parts, axis=1)


def _rows(value: Any) -> Array:
    # Of a list of strings and numbers NumPy would make strings.
    try:
        rows = np.array(value, object) if isinstance(value, list | tuple) else np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(f"the rows are no rectangular array: {error}") from None
    if rows.ndim == 2 and rows.dtype.kind in "OUTSiub":
        return rows
    raise InvalidInputError(
        "the model has columns of categories, which are strings or integers: expected rows of objects, or a "
        f"data frame, got {rows.dtype} of shape {rows.shape}"
    )


def _of_frame(value: Any, name: Any) -> Array:
    if is_coded(value[name]):
        raise InvalidInputError(
            f"column '{name}' holds categories, and the model takes numbers there"
        )
    column = value[name]
    if np.asarray(column).dtype.kind == "O":
        return _numbers(f"column '{name}'", np.asarray(column))
    return _rounded(column_of_numbers(value, name))


def _numbers(what: str, values: Array) -> Array:
    if values.dtype.kind not in "Oiub":
        raise InvalidInputError(f"{what}: expected numbers, got strings")
    if values.dtype.kind != "O":
        return _rounded(values)
    try:
        return _rounded(values.astype(np.float64))
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{what}: expected numbers: {error}") from None


def _rounded(values: Array) -> Array:
    """As CatBoost has numbers, once rounded from what they are."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _hashes(what: str, column: Any) -> Array:
    if is_coded(column):
        return _of_codes(what, column)
    values: Array = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind not in "OUTSiub":
        raise _no_category(what, f"dtype {values.dtype}")
    if values.dtype.kind in "iub":
        own, places = np.unique(values, return_inverse=True)
        return _of_cells(what, cast(list[Any], own.tolist()))[places]
    return _of_cells(what, cast(list[Any], values.tolist()))


def _of_codes(what: str, column: Any) -> Array:
    """Of pandas' categories, each once."""
    codes = np.asarray(column.cat.codes, np.int64)
    if (codes < 0).any():
        raise _no_category(what, f"none in row {int(codes.argmin())}")
    return _of_cells(what, cast(list[Any], np.asarray(column.cat.categories).tolist()))[codes]


def _of_cells(what: str, cells: Sequence[Any]) -> Array:
    # Of equal numbers of several types Python makes one: types are looked at before.
    kinds: set[type[Any]] = {type(cell) for cell in cells}
    odd = {kind for kind in kinds if not issubclass(kind, _CATEGORIES)}
    if odd:
        first = next(cell for cell in cells if type(cell) in odd)
        raise _no_category(what, f"{type(first).__name__} {first!r:.40}")
    table = _Table()
    try:
        return np.fromiter(map(table.__getitem__, cells), np.float64, len(cells))
    except InvalidInputError as error:
        raise InvalidInputError(f"{what}: {error}") from None


def _no_category(what: str, got: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what}: expected categories, which are strings or integers, got {got}: make strings of others"
    )


class _Table(dict[Any, int]):
    """The hash of each category: of an integer, that of its digits."""

    def __missing__(self, category: Any) -> int:
        found = self[category] = category_hash(_text(category))
        return found


def _text(category: Any) -> bytes:
    if isinstance(category, bytes):
        return category
    if isinstance(category, _INTEGERS):
        number = int(category)
        if not _LEAST <= number <= _MOST:
            raise InvalidInputError(f"the category {number} is beyond int64: make a string of it")
        return str(number).encode()
    try:
        return str(category).encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"the category {category!r} is no text") from None
