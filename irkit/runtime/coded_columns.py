"""Columns of categories of a data frame, as the numbers that LightGBM and XGBoost gave these in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import BY_ORDER, Categories
from irkit.weights import Array


def is_coded(column: Any) -> bool:
    """Whether a column holds categories: pandas' type has them, and the column their numbers."""
    return hasattr(getattr(column, "dtype", None), "categories") and hasattr(column, "cat")


def coded_columns(
    known: Sequence[Categories], value: Any, names: Sequence[Any]
) -> dict[Any, Array]:
    """Column → its numbers in float64, NaN for what is missing.

    What was not trained is missing to LightGBM; what it is to XGBoost is open. `names`: of the model's
    columns, in order. Raises InvalidInputError where the frame's columns of categories are not the model's.
    """
    coded = [name for name in names if is_coded(value[name])]
    if len(coded) != len(known):
        found = ", ".join(map(repr, coded)) or "none"
        raise InvalidInputError(
            f"the data frame has {found} as columns of categories; the model was fitted on {len(known)}"
        )
    made: dict[Any, Array] = {}
    for name, (place, categories) in zip(coded, known, strict=True):
        if place not in (BY_ORDER, list(names).index(name)):
            raise InvalidInputError(
                f"column '{name}' holds categories, and column '{names[place]}' of the model none"
            )
        made[name] = _numbers(name, value[name], categories, exact=place != BY_ORDER)
    return made


def _numbers(name: Any, column: Any, categories: Sequence[Any], exact: bool) -> Array:
    """`exact`: the library looks at the types of categories too."""
    own = np.asarray(column.cat.categories)
    strings = bool(categories) and isinstance(categories[0], str)
    if exact and (own.dtype.kind in "OU") != strings:
        raise InvalidInputError(f"column '{name}': categories of dtype {own.dtype}, not as trained")
    if exact and not strings and own.dtype != np.int64:
        raise InvalidInputError(f"column '{name}': categories of dtype {own.dtype}, expected int64")
    table = {category: float(number) for number, category in enumerate(categories)}
    alike = cast(list[Any], own.tolist())
    codes = np.asarray(column.cat.codes, np.int64)
    if exact:
        strange = [c for i, c in enumerate(alike) if c not in table and (codes == i).any()]
        if strange:
            raise InvalidInputError(f"column '{name}': category {strange[0]!r} was not trained")
    # The number of what is missing is -1.
    places = np.array([*(table.get(c, np.nan) for c in alike), np.nan], np.float64)
    return places[codes]
