"""What calls of pandas give, where that is known before they are made: rows, and the types of elements."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irkit.annotations.frames import Rows
from irkit.annotations.sets.pandas import BY_ROWS, OF_TEXT
from irkit.annotations.structures import ArrayType, of_kind
from irkit.dialects.types import element_type


@dataclass(frozen=True)
class Known:
    """What is known of an object of the host's. `rows`: its labels; `dtype`: of a series, as pandas has it;
    `kind`: "Series", "DataFrame" or None."""

    rows: Rows | None = None
    dtype: Any = None
    kind: str | None = None
    name: Hashable = None


TRUTHS_OF_TEXT = frozenset([
    "contains", "endswith", "fullmatch", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric",
    "isspace", "istitle", "isupper", "match", "startswith",
])  # fmt: skip
TEXT_OF_TEXT = frozenset([
    "capitalize", "casefold", "center", "get", "ljust", "lower", "lstrip", "normalize", "pad",
    "removeprefix", "removesuffix", "repeat", "replace", "rjust", "rstrip", "slice", "slice_replace",
    "strip", "swapcase", "title", "translate", "upper", "wrap", "zfill",
])  # fmt: skip
RUNNING = frozenset([
    "bfill", "cummax", "cummin", "cumprod", "cumsum", "diff", "ffill", "pct_change", "rank", "shift",
])  # fmt: skip
"""Methods that give float64 of float64."""
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


def known_of(source: Any, steps: Sequence[Any]) -> tuple[ArrayType | None, Known]:
    """The type of the array that a call gives, if it is certain, and what else is known of what it gives."""
    nothing = Known()
    if callable(source) and not hasattr(source, "known"):
        return _of_function(source, steps, nothing)
    own = getattr(source, "known", nothing)
    path = [s.value for s in steps if s.kind == "attribute"]
    last = steps[-1]
    if own.kind != "Series" or own.rows is None or last.kind != "call":
        return None, nothing
    plain = Known(own.rows, None, "Series", own.name)
    if len(path) == 2 and path[0] == "str":
        return _of_text(own, path[1], last.value[1], plain)
    if len(path) != 1:
        return None, nothing
    to = _elements(own, path[0], *last.value)
    if to is not None:
        return ArrayType((own.rows.length,), np.dtype(to)), plain
    return None, plain if path[0] in BY_ROWS["Series"] else nothing


def _elements(own: Known, method: str, args: Any, kwargs: Any) -> Any:
    """The type of what a method of a series gives; None of what is not certain."""
    alone = len(args) == 1 and not kwargs
    if method == "astype" and alone:
        return _compiled(args[0])
    if method in ("isna", "isnull", "notna", "notnull"):
        return np.bool_
    if method == "isin" or (method in COMPARED and alone and _is_scalar(args)):
        return np.bool_ if _is_plain(own.dtype) else None
    if method in RUNNING and own.dtype == np.float64 and not args and not kwargs:
        return np.float64
    return None


def _of_text(own: Known, method: str, kwargs: Any, plain: Known) -> tuple[ArrayType | None, Known]:
    """Of methods of `.str`."""
    assert own.rows is not None
    if own.dtype == "str" and method in TRUTHS_OF_TEXT and "na" not in kwargs:
        return ArrayType((own.rows.length,), np.dtype(bool)), plain
    if own.dtype == "str" and method in TEXT_OF_TEXT:
        return None, replace(plain, dtype=own.dtype)
    rows = method in OF_TEXT and method not in ("extract", "split")
    return None, plain if rows else Known()


def _of_function(
    function: Any, steps: Sequence[Any], nothing: Known
) -> tuple[ArrayType | None, Known]:
    """Comparisons of a series with a number or text."""
    name = getattr(function, "__name__", "")
    if len(steps) != 1 or steps[0].kind != "call":
        return None, nothing
    args, kwargs = steps[0].value
    if name not in COMPARED or len(args) != 2 or kwargs:
        return None, nothing
    own = getattr(args[0], "known", nothing)
    if (
        own.kind == "Series"
        and own.rows is not None
        and _is_plain(own.dtype)
        and _is_scalar(args[1:])
    ):
        return ArrayType((own.rows.length,), np.dtype(bool)), own
    return None, nothing


def _compiled(to: Any) -> np.dtype[Any] | None:
    if not of_kind(to, type, np.dtype, str) or to is str:
        return None
    try:
        found: np.dtype[Any] = np.dtype(to)
    except TypeError:
        return None
    return found if compiled_dtype(found) else None


def _is_plain(dtype: Any) -> bool:
    """Whether comparisons give truths that are never missing."""
    name = str(dtype)
    return name in ("str", "object", "category") or isinstance(dtype, np.dtype)


def _is_scalar(args: Sequence[Any]) -> bool:
    return len(args) == 1 and isinstance(args[0], str | int | float | np.generic)


def compiled_dtype(dtype: Any) -> bool:
    """Whether columns of it are arrays of the trace."""
    if not of_kind(dtype, np.dtype) or dtype.kind not in "biuf":
        return False
    try:
        element_type(dtype)
    except KeyError:
        return False
    return True
