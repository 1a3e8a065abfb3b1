"""Statistics of the target by category (CatBoost's CTRs), from a model's JSON: a value for each hash.

Prokhorenkova et al., CatBoost: unbiased boosting with categorical features (2018). A combination of
categories, and of answers to splits, has a hash; by it a table has counts, of which CatBoost makes a number
in float32 (catboost/libs/model/static_ctr_provider.cpp). All that hangs on no row is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.weights import Array

_MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")
_COUNTERS = ("Counter", "FeatureFreq")
_OF_CLASSES = ("Borders", "Buckets")
_MOST_ELEMENTS = 64
"""Of a combination; CatBoost makes them of at most eight categories and the splits of a tree."""
_MOST_PARTS = 4096
"""Of an entry of a table: its hash, and a count for each class of the target."""
# Of places of a table that have no entry.
_NO_HASH = -1
_LARGEST = (1 << 31) - 1
"""CatBoost's counts are of 32 bits."""


class Element(NamedTuple):
    """Of what a combination's hash is made: the "category" of a column, or whether it is "equal" to the one
    of a hash, or whether a number is "above" a border (float32)."""

    kind: str
    column: int
    value: float = 0.0


@dataclass
class Statistic:
    """A number by a combination's hash. `keys`: the hashes as int64, ascending; `values`: float32 of each;
    `other`: of all others; `borders`: float32, ascending, that splits compare it with."""

    elements: tuple[Element, ...]
    keys: Array
    values: Array
    other: np.float32
    borders: Array


class _Table(NamedTuple):
    keys: Array
    counts: Array
    denominator: int


def hash_of(value: Any) -> int:
    """A category's hash, a number of 32 bits that JSON has with or without a sign, as a signed one."""
    if type(value) is not int or not -(1 << 31) <= value < 1 << 32:
        raise InvalidModelError(f"the CatBoost model has {value!r} as the hash of a category")
    return value - (1 << 32) if value > _LARGEST else value


def statistics(document: Any, numbers: Array, categories: Array) -> tuple[Statistic, ...]:
    """All statistics of a model, in the order in which its splits number them. `numbers`, `categories`: the
    columns of both kinds of features.

    Raises InvalidModelError, UnsupportedError, or what Python raises of other JSON.
    """
    listed: list[Any] = document["features_info"].get("ctrs") or []
    data: dict[str, Any] = document.get("ctr_data") or {}
    tables: dict[str, _Table] = {}
    found: list[Statistic] = []
    for number, ctr in enumerate(listed):
        what, name, kind = f"statistic {number}", ctr["identifier"], ctr["ctr_type"]
        if name not in tables:
            if name not in data:
                raise InvalidModelError(f"{what} of the CatBoost model has no table")
            tables[name] = _table(what, kind, data[name])
        elements = tuple(_element(what, e, numbers, categories) for e in ctr["elements"])
        if not 0 < len(elements) <= _MOST_ELEMENTS:
            raise UnsupportedError(
                f"{what} of the CatBoost model is of {len(elements)} features, of 1 to {_MOST_ELEMENTS}"
            )
        # Categories first, then numbers, then categories that are asked for.
        ranks = ("category", "above", "equal")
        ordered = tuple(sorted(elements, key=lambda e: ranks.index(e.kind)))
        values, other = _values(what, kind, ctr, tables[name])
        borders = single(ctr["borders"], f"the borders of {what}")
        found.append(Statistic(ordered, tables[name].keys, values, other, borders))
    return tuple(found)


def single(values: Any, what: str) -> Array:
    """A list of finite numbers as float32. Raises InvalidModelError."""
    array = np.array(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "if"):
        raise InvalidModelError(f"{what} of the CatBoost model: no list of numbers")
    with np.errstate(over="ignore", under="ignore"):
        made = array.astype(np.float32)
    if not np.isfinite(made).all():
        raise InvalidModelError(f"{what} of the CatBoost model: not all are finite float32")
    return made


def _element(what: str, element: Any, numbers: Array, categories: Array) -> Element:
    kind = element["combination_element"]
    if kind == "float_feature":
        column = _column(what, element["float_feature_index"], numbers)
        return Element(
            "above", column, float(single([element["border"]], f"a border of {what}")[0])
        )
    if kind == "cat_feature_value":
        return Element("category", _column(what, element["cat_feature_index"], categories))
    if kind == "cat_feature_exact_value":
        column = _column(what, element["cat_feature_index"], categories)
        return Element("equal", column, hash_of(element["value"]))
    raise UnsupportedError(f"{what} of the CatBoost model: a combination with '{kind}'")


def _column(what: str, number: Any, columns: Array) -> int:
    if type(number) is not int or not 0 <= number < len(columns):
        raise InvalidModelError(f"{what} of the CatBoost model names feature {number}")
    return int(columns[number])


def _table(what: str, kind: str, table: Any) -> _Table:
    """Counts by hash, in the order of hashes as signed numbers."""
    stride, rows = table["hash_stride"], table["hash_map"]
    wide = {**dict.fromkeys(_MEANS, 3), **dict.fromkeys(_COUNTERS, 2)}.get(kind)
    if wide is None and kind not in _OF_CLASSES:
        known = ", ".join((*_MEANS, *_COUNTERS, *_OF_CLASSES))
        raise UnsupportedError(
            f"{what} of the CatBoost model is of type '{kind}' (supported: {known})"
        )
    fits = type(stride) is int and (stride == wide if wide else 3 <= stride <= _MOST_PARTS)
    if not fits or len(rows) % stride:
        raise InvalidModelError(f"the table of {what} of the CatBoost model has rows of {stride!r}")
    keys = np.array([_key(what, k) for k in rows[::stride]], np.uint64).astype(np.int64)
    parts = [_counts(what, rows[k::stride], kind in _MEANS and k == 1) for k in range(1, stride)]
    counts = np.stack(parts, axis=1)
    order = np.argsort(keys, kind="stable")
    order = order[keys[order] != _NO_HASH]
    keys, counts = keys[order], counts[order]
    if (keys[1:] == keys[:-1]).any():
        raise InvalidModelError(f"the table of {what} of the CatBoost model has a hash twice")
    if kind in _OF_CLASSES and (counts.sum(axis=1) > _LARGEST).any():
        raise InvalidModelError(
            f"the table of {what} of the CatBoost model has counts beyond int32"
        )
    denominator = _counts(what, [table.get("counter_denominator", 0)], False)
    return _Table(keys, counts, int(denominator[0]))


def _key(what: str, written: Any) -> int:
    # JSON's numbers are floats to many readers: CatBoost writes hashes as text.
    if not isinstance(written, str) or not written.isdecimal() or len(written) > 20:
        raise InvalidModelError(f"the table of {what} of the CatBoost model has hash {written!r}")
    return int(written)


def _counts(what: str, values: list[Any], sums: bool) -> Array:
    """Counts, or sums of targets as float32, as float64."""
    if sums:
        return single(values, f"sums of {what}").astype(np.float64)
    if not all(type(v) is int and 0 <= v <= _LARGEST for v in values):
        raise InvalidModelError(
            f"the table of {what} of the CatBoost model has counts that are none"
        )
    return np.array(values, np.float64)


def _values(what: str, kind: str, ctr: Any, table: _Table) -> tuple[Array, np.float32]:
    """What CatBoost makes of each entry of a table, and of no entry."""
    none, counts = np.zeros((1, table.counts.shape[1])), table.counts
    # The last row is what there is of no entry.
    counts = np.concatenate([counts, none])
    classes = counts.shape[1]
    if kind in _MEANS:
        part, total = counts[:, 0], counts[:, 1]
    elif kind in _COUNTERS:
        part, total = counts[:, 0], np.full(len(counts), float(table.denominator))
    else:
        border = ctr["target_border_idx"]
        if type(border) is not int or not 0 <= border < classes - (kind == "Borders"):
            raise InvalidModelError(
                f"{what} of the CatBoost model names border {border} of {classes} classes"
            )
        first, last = (border, border + 1) if kind == "Buckets" else (border + 1, classes)
        part, total = counts[:, first:last].sum(axis=1), counts.sum(axis=1)
    prior, weight, shift, scale = single(
        [ctr["prior_numerator"], ctr["prior_denomerator"], ctr["shift"], ctr["scale"]],
        f"the priors of {what}",
    )
    with np.errstate(all="ignore"):
        share = (part.astype(np.float32) + prior) / (total.astype(np.float32) + weight)
        made = (share + shift) * scale
    return made[:-1], made[-1]
