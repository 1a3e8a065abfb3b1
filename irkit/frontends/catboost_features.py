"""What splits of a CatBoost model look at: numbers of a row, its categories, and statistics of these.

`features_info` of the model's JSON. Splits compare columns of a *wide* row: the row's own columns, then one
for each statistic, then one for each category that a split asks for (one-hot; 1 where the row has it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.catboost_ctrs import Statistic, hash_of, statistics
from irkit.weights import Array

# Where NaN goes: below all borders, which it is not greater than, or above all.
_NAN_ABOVE = {"AsFalse": False, "AsIs": False, "AsTrue": True}
_REFUSED = {"text_features": "text feature", "embedding_features": "embedding feature"}


@dataclass
class Features:
    """Features by their columns. `numbers` and `categories`: the columns of each, as the model numbers them;
    `names`: of all, empty where it was trained without; `nan_above`: by column."""

    numbers: Array
    categories: Array
    names: tuple[str, ...]
    nan_above: Array
    statistics: tuple[Statistic, ...]
    first_split: int
    """The number that the first border of the first statistic has among all splits."""
    asked: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """Column and hash of the categories that splits ask for, as they are met, and their numbers."""

    @property
    def count(self) -> int:
        """Columns of a row."""
        return len(self.numbers) + len(self.categories)

    def split(self, what: str, split: Any) -> tuple[int, float]:
        """The column of a wide row that a split compares, and its border. Raises InvalidModelError,
        UnsupportedError."""
        kind = split["split_type"]
        if kind == "FloatFeature":
            number = _within(what, "feature", split["float_feature_index"], len(self.numbers))
            return int(self.numbers[number]), split["border"]
        if kind == "OneHotFeature":
            number = _within(
                what, "categorical feature", split["cat_feature_index"], len(self.categories)
            )
            key = (int(self.categories[number]), hash_of(split["value"]))
            first = self.count + len(self.statistics)
            return first + self.asked.setdefault(key, len(self.asked)), 0.5
        if kind == "OnlineCtr":
            return self.count + self._statistic(what, split), split["border"]
        raise UnsupportedError(f"{what} of the CatBoost model: split '{kind}'")

    def _statistic(self, what: str, split: Any) -> int:
        """The statistic that a split compares: JSON gives its place among all borders alone."""
        place = split["split_index"]
        _within(what, "split", place, 1 << 62)
        left = place - self.first_split
        for number, found in enumerate(self.statistics):
            if 0 <= left < len(found.borders):
                if found.borders[left] != split["border"]:
                    break
                return number
            left -= len(found.borders)
        raise InvalidModelError(
            f"{what} of the CatBoost model names split {place}, which is no border of its statistics"
        )


def features_of(document: Any) -> Features:
    """The features that a model's JSON tells of. Raises InvalidModelError, UnsupportedError, or what Python
    raises of other JSON."""
    found = document["features_info"]
    _refuse(found)
    floats, others = found.get("float_features", []), found.get("categorical_features", [])
    every = [*floats, *others]
    flat = np.array([f["flat_feature_index"] for f in every])
    for some in (floats, others):
        if [f["feature_index"] for f in some] != [*range(len(some))]:
            raise _misnumbered(len(every))
    if not every or sorted(flat.tolist()) != [*range(len(every))]:
        raise _misnumbered(len(every))
    numbers, categories = flat[: len(floats)], flat[len(floats) :]
    names = [str(f.get("feature_id", "")) for f in every]
    above = np.zeros(len(every), np.bool_)
    # Where training saw no NaN, CatBoost compares it as it is, whatever the treatment.
    above[numbers] = [
        _NAN_ABOVE[f["nan_value_treatment"]] and f["has_nans"] is True for f in floats
    ]
    # Files of models that have only numbers need not tell their borders, which splits repeat.
    before = sum(len(f.get("borders") or ()) for f in floats)
    before += sum(len(f.get("values") or ()) for f in others)
    return Features(
        numbers,
        categories,
        tuple(names[int(place)] for place in np.argsort(flat)) if any(names) else (),
        above,
        statistics(document, numbers, categories),
        before,
    )


def _misnumbered(count: int) -> InvalidModelError:
    return InvalidModelError(
        f"the CatBoost model numbers its {count} features otherwise than from 0 on"
    )


def _refuse(found: Any) -> None:
    """Raises UnsupportedError for features of which CatBoost computes what splits compare."""
    reasons: list[str] = []
    for key, kind in _REFUSED.items():
        for feature in found.get(key, []):
            name = feature.get("feature_id") or feature["flat_feature_index"]
            reasons.append(
                f"{kind} '{name}': its splits go by numbers that CatBoost computes of it"
            )
    if reasons:
        raise UnsupportedError("cannot import a CatBoost model exactly:", reasons)


def _within(what: str, kind: str, number: Any, end: int) -> int:
    if type(number) is not int or not 0 <= number < end:
        raise InvalidModelError(f"{what} of the CatBoost model names {kind} {number}")
    return number
