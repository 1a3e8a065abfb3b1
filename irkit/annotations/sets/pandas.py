"""pandas: which methods take rows one by one, which aggregations of groups can be put together of those of
parts, and when a join may be made in parts of its left side.

What is not named here is called whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.annotations.frames import kind_of, pandas
from irkit.annotations.split_types import RowSplit
from irkit.annotations.structures import mapped, of_kind

# fmt: off

BY_ROWS = {
    "Series": frozenset([
        "abs", "astype", "between", "clip", "fillna", "isin", "isna", "isnull", "map", "mask", "notna",
        "notnull", "replace", "round", "where", "add", "sub", "mul", "div", "truediv", "eq", "ne", "lt",
        "le", "gt", "ge",
    ]),
    "DataFrame": frozenset([
        "abs", "astype", "fillna", "isin", "isna", "isnull", "notna", "notnull", "replace", "round",
    ]),
}
"""Methods whose rows need no others."""
OF_TEXT = frozenset([
    "capitalize", "casefold", "center", "contains", "count", "endswith", "extract", "find", "fullmatch",
    "get", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace",
    "istitle", "isupper", "len", "ljust", "lower", "lstrip", "match", "normalize", "pad", "removeprefix",
    "removesuffix", "repeat", "replace", "rfind", "rjust", "rstrip", "slice", "slice_replace", "split",
    "startswith", "strip", "swapcase", "title", "translate", "upper", "wrap", "zfill",
])
"""Methods of `.str` of the same kind."""
MERGED = {"sum": "sum", "count": "sum", "size": "sum", "min": "min", "max": "max"}
"""Aggregation of a group → that of what parts give."""
GROUPING = frozenset(["by", "dropna", "observed", "as_index", "sort"])
JOINED = frozenset(["right", "on", "left_on", "right_on", "how", "suffixes"])

# fmt: on


@dataclass(frozen=True)
class Plan:
    """A call in parts of `rows`. `part` gives what rows from one to below another give, `merge` puts these
    together; `exact`: to the bit, else but for the rounding of sums."""

    rows: int
    part: Callable[[int, int], Any]
    merge: Callable[[Sequence[Any]], Any]
    exact: bool = True


def plan_of(source: Any, steps: Sequence[Any], values: Sequence[Any]) -> Plan | None:
    """How a call is made in parts; None where it is made whole. `values`: what each of `steps` is given."""
    kinds = tuple(s.kind for s in steps)
    if kind_of(source) in ("Series", "DataFrame"):
        if kinds == ("attribute", "call"):
            return _of_method(source, values[0], values[1])
        if (
            kinds == ("attribute", "attribute", "call")
            and values[0] == "str"
            and values[1] in OF_TEXT
        ):
            return _by_rows(source, _method("str", values[1]), values[2])
        return _of_groups(source, kinds, values)
    if kinds == ("call",) and getattr(source, "__name__", "") == "merge":
        args, kwargs = values[0]
        if args and kind_of(args[0]) == "DataFrame":
            return _of_join(args[0], (tuple(args[1:]), kwargs))
    return None


def _of_method(source: Any, name: str, given: Any) -> Plan | None:
    if name in BY_ROWS[kind_of(source) or "Series"]:
        return _by_rows(source, _method(name), given)
    return _of_join(source, given) if name == "merge" else None


def _method(*path: str) -> Callable[..., Any]:
    def call(source: Any, args: Any, kwargs: Any) -> Any:
        found = functools.reduce(getattr, path, source)
        return found(*args, **kwargs)

    return call


# Rows one by one


def _by_rows(source: Any, call: Callable[..., Any], given: Any) -> Plan | None:
    """Arguments of the same rows are cut with it; others of pandas are in the way."""
    rows, split = len(source), RowSplit()
    odd: list[Any] = []

    def note(value: Any) -> None:
        aligned = kind_of(value) is None or (
            len(value) == rows and (value.index is source.index or value.index.equals(source.index))
        )
        whole = isinstance(value, np.ndarray) and value.ndim > 0
        if not aligned or whole:
            odd.append(value)

    mapped(given, note)
    if odd:
        return None

    def part(start: int, stop: int) -> Any:
        args, kwargs = mapped(
            given, lambda v: split.split(v, start, stop) if kind_of(v) is not None else v
        )
        return call(split.split(source, start, stop), args, kwargs)

    return Plan(rows, part, split.merge)


# Groups


def _of_groups(source: Any, kinds: Sequence[str], values: Sequence[Any]) -> Plan | None:
    """`frame.groupby(by)[...].sum()` and its like, of groups in order."""
    if tuple(kinds[:2]) != ("attribute", "call") or values[0] != "groupby":
        return None
    if tuple(kinds[-2:]) != ("attribute", "call") or len(kinds) < 4 or values[-1] != ((), {}):
        return None
    args, kwargs = values[1]
    named = {**dict(zip(("by",), args, strict=False)), **kwargs}
    plain = len(args) <= 1 and not set(named) - GROUPING
    if not plain or not all(named.get(k, True) for k in ("as_index", "sort", "dropna")):
        return None
    by = named.get("by")
    keys: Any = [by] if of_kind(by, str) else by
    if kind_of(source) != "DataFrame" or not of_kind(keys, list):
        return None
    if not all(of_kind(k, str) and k in source.columns for k in keys):
        return None
    how = values[-2]
    if how not in (*MERGED, "mean") or not _fit(source, keys, values[2:-2], how):
        return None
    middle = [(k, v) for k, v in zip(kinds[2:-2], values[2:-2], strict=True)]
    part = functools.partial(
        _grouped, source, named, middle, ("sum", "count") if how == "mean" else (how,)
    )
    levels = list(range(len(keys))) if len(keys) > 1 else 0
    merge = functools.partial(_regrouped, levels, how)
    return Plan(len(source), part, merge, exact=how in ("count", "size", "min", "max"))


def _fit(source: Any, keys: Sequence[str], middle: Sequence[Any], how: str) -> bool:
    """Whether all that is aggregated is of numbers that parts may be put together of."""
    if any(source[k].dtype.name == "category" for k in keys):
        return False
    if how == "size":
        return not middle
    chosen: list[Any] = [c for c in source.columns if c not in keys]
    if middle:
        key = middle[0] if len(middle) == 1 else None
        chosen = list(key or ()) if of_kind(key, list) else [key]
    wide = ("float64", "int64") if how == "mean" else ("float64", "int64", "int32", "bool")
    known = [c for c in chosen if of_kind(c, str) and c in source.columns]
    return len(known) == len(chosen) and all(source[c].dtype.name in wide for c in known)


def _grouped(
    source: Any,
    named: Mapping[str, Any],
    middle: Sequence[tuple[str, Any]],
    hows: Sequence[str],
    start: int,
    stop: int,
) -> Any:
    groups = source.iloc[start:stop].groupby(**named)
    for kind, value in middle:
        groups = getattr(groups, value) if kind == "attribute" else groups[value]
    return tuple(getattr(groups, how)() for how in hows)


def _regrouped(levels: Any, how: str, parts: Sequence[tuple[Any, ...]]) -> Any:
    """One aggregation of what parts gave."""

    def again(which: int, name: str) -> Any:
        whole = pandas().concat([p[which] for p in parts])
        return getattr(whole.groupby(level=levels), name)()

    if how == "mean":
        return again(0, "sum") / again(1, "sum")
    return again(0, MERGED[how])


# Joins


def _of_join(left: Any, given: Any) -> Plan | None:
    """Rows of the left side one by one, the right side whole."""
    args, kwargs = given
    named = {**dict(zip(("right", "how", "on"), args, strict=False)), **kwargs}
    right = named.get("right")
    if len(args) > 3 or set(named) - JOINED or kind_of(right) != "DataFrame":
        return None
    if named.get("how", "inner") not in ("inner", "left"):
        return None

    def part(start: int, stop: int) -> Any:
        return left.iloc[start:stop].merge(**named)

    def merge(parts: Sequence[Any]) -> Any:
        return pandas().concat(list(parts), ignore_index=True)

    return Plan(len(left), part, merge)
