"""Strings of a column as their places among those that a program tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import is_pandas_na
from irkit.weights import Array

UNKNOWN = -1.0


class _Places(dict[Any, float]):
    """Place of each string; of any other, and of a number, -1; NaN of NaN, and of pandas' NA where that
    is `missing`."""

    missing = False

    def __missing__(self, value: Any) -> float:
        if value is None or isinstance(value, str):
            return UNKNOWN
        if isinstance(value, float) and value != value:
            return np.nan
        if isinstance(value, int | float):
            return UNKNOWN
        if self.missing and is_pandas_na(value):
            return np.nan
        raise InvalidInputError(f"{type(value).__name__} is neither a string, None nor NaN")


def places(what: str, values: Any, words: Sequence[str | None], missing: bool = False) -> Array:
    """float64 numbers of a column's strings; pandas' NA is NaN where that is `missing`.

    Raises InvalidInputError, which names the column as `what`, if it holds no strings.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "OUT":
        raise InvalidInputError(f"{what}: expected strings, got dtype {array.dtype}")
    table = _Places((word, float(place)) for place, word in enumerate(words))
    table.missing = missing
    try:
        found = list(map(table.__getitem__, cast(list[Any], array.tolist())))
    except (InvalidInputError, TypeError) as error:
        raise InvalidInputError(f"{what}: {error}") from None
    return np.array(found, np.float64)
