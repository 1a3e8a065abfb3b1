"""Data frames as arrays: columns by name, checked as scikit-learn checks them.

A frame is anything with `columns` and, for each name, a column that NumPy can read (pandas, Polars): no
such library is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.coded_columns import coded_columns
from irkit.runtime.host_arrays import refuse_own_types
from irkit.runtime.strings import places
from irkit.weights import Array

_NARROW = np.dtype(np.float32)
_WIDE = ("int32", "int64", "uint32", "uint64")


class ColumnsApart(Exception):
    """A frame has columns of several types, of which the model computes some apart; `types` of all."""

    def __init__(self, types: tuple[str, ...]) -> None:
        super().__init__(types)
        self.types = types


def is_data_frame(value: Any) -> bool:
    """Whether `value` is a data frame."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def fitted_columns(info: ModelInfo, value: Any) -> Array:
    """The columns that the model was fitted on, rows×columns, in their common dtype.

    Raises InvalidInputError if a column is missing, out of place, or holds no numbers; ColumnsApart if it
    hangs on their types which program takes them.
    """
    names: list[Any] = list(value.columns)
    if (whole := _whole(info, names, value)) is not None:
        return whole
    wanted = picked_columns(info, names)
    present = set(names)
    words = dict(info.words)
    of_strings = {n: words[c] for c, n in enumerate(wanted) if c in words}
    looked_at = [n for n in wanted if n in present and n not in info.unused]
    if not looked_at:
        raise InvalidInputError("the data frame has no columns that the model looks at")
    # These libraries look at all columns.
    coded = {} if info.categories is None else coded_columns(info.categories, value, looked_at)
    plain = [n for n in looked_at if n not in of_strings and n not in coded]
    columns = {n: column_of_numbers(value, n) for n in plain}
    for name, column in columns.items():
        if column.dtype.kind != "f":
            refuse_own_types(info, f"column '{name}'", column.dtype)
    if info.types_apart and (types := _types_apart(columns, wanted)) is not None:
        raise ColumnsApart(types)
    dtype = np.result_type(*(c.dtype for c in columns.values())) if columns else np.dtype("f8")
    dtype = dtype if dtype.kind == "f" or not (of_strings or coded) else np.dtype("f8")
    columns |= coded
    for name in (n for n in looked_at if n in of_strings):
        missing = wanted.index(name) in info.na_words
        columns[name] = places(f"column '{name}'", value[name], of_strings[name], missing)
    # What the model never looks at may be anything, or not be there.
    rows = len(next(iter(columns.values())))
    nothing = np.zeros(rows, dtype)
    return np.stack([columns.get(n, nothing).astype(dtype) for n in wanted], axis=1)


def picked_columns(info: ModelInfo, names: Sequence[Any]) -> Sequence[Any]:
    """Of a frame whose columns have these names, those that are the model's columns, in its order.

    Raises InvalidInputError if one is missing, out of place, or there twice.
    """
    wanted: Sequence[Any] = names
    # Columns without names, or a model fitted on arrays: their places count.
    if info.columns is not None and (info.names_as_text or all(isinstance(n, str) for n in names)):
        _check_names(info, list(map(str, names)))
        spelled = {str(n): n for n in names}
        if len(spelled) != len(names):
            raise InvalidInputError("the data frame has several columns of one name")
        wanted = [spelled.get(n, n) for n in info.columns]
    if len(set(wanted)) != len(wanted) or any(names.count(n) > 1 for n in wanted):
        raise InvalidInputError("the data frame has several columns of one name")
    return wanted


def column_of_numbers(value: Any, name: Any) -> Array:
    """A column of a data frame as it stands; floats and truths that pandas keeps beside a mask are float64.

    Raises InvalidInputError if it holds no numbers.
    """
    try:
        array = _numbers(value[name])
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"column '{name}' is no array: {error}") from None
    if array.dtype.kind not in "fiub" or array.ndim != 1:
        mend = ": convert it to a type of numbers first" if array.dtype.kind == "O" else ""
        raise InvalidInputError(f"column '{name}': expected numbers, got dtype {array.dtype}{mend}")
    return array


def _types_apart(columns: Mapping[Any, Array], wanted: Sequence[Any]) -> tuple[str, ...] | None:
    """NumPy's names of the types of all columns, where float32 stands among others; else None. Columns that
    are not read, and integers beside which float32 becomes float64, are as float64."""
    kinds = {column.dtype for column in columns.values()}
    if _NARROW not in kinds or len(kinds) == 1:
        return None
    if halves := [str(n) for n, column in columns.items() if column.dtype == np.float16]:
        raise InvalidInputError(
            f"columns {', '.join(halves)} are float16, beside float32: the model would compute them in "
            "their own type; convert them first"
        )
    types = [columns[n].dtype.name if n in columns else "float64" for n in wanted]
    return tuple("float64" if t in _WIDE else t for t in types)


def _whole(info: ModelInfo, names: list[Any], value: Any) -> Array | None:
    """All columns at once, as a frame of one type has them: those of the model, in order, of which it looks
    at all. None where anything is otherwise; column by column a frame takes a hundred times as long."""
    expected = info.columns is None or tuple(names) == info.columns
    if (
        info.words
        or info.unused
        or info.categories
        or not expected
        or len(set(names)) != len(names)
    ):
        return None
    types: list[Any] = list(getattr(value, "dtypes", ()))
    first = types[0] if len(types) == len(names) > 0 else None
    # Types of NumPy alone: what others have for missing, NumPy has not.
    if not isinstance(first, np.dtype) or first.kind != "f" or any(t != first for t in types):
        return None
    array = np.asarray(value.to_numpy())
    return array if array.dtype == first and array.ndim == 2 else None


def named_rows(info: ModelInfo, inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs themselves. Raises InvalidInputError for rows without names, of which the model's library
    takes none either."""
    if info.frames_only and not all(map(is_data_frame, inputs)):
        raise InvalidInputError(
            f"input '{info.inputs[0]}' has no names of columns, by which the model picks them: expected a "
            f"data frame, got {type(next(x for x in inputs if not is_data_frame(x))).__name__}"
        )
    return inputs


def _check_names(info: ModelInfo, names: Sequence[str]) -> None:
    assert info.columns is not None
    present, unused = set(names), set(info.unused)
    missing = [n for n in info.columns if n not in present and not (info.by_name and n in unused)]
    if missing:
        raise InvalidInputError(f"the data frame lacks columns {', '.join(map(repr, missing))}")
    if info.by_name:
        return
    known = set(info.columns)
    more = [n for n in names if n not in known]
    if more:
        raise InvalidInputError(
            f"the data frame has columns {', '.join(map(repr, more))}, which the model was not fitted on"
        )
    if tuple(names) != info.columns:
        order = ", ".join(map(repr, info.columns))
        raise InvalidInputError(f"the data frame's columns are in another order: expected {order}")


def _numbers(column: Any) -> Array:
    """A column as an array. Floats and truths that pandas keeps beside a mask are float64, NaN where it says
    that there is none, and so are floats that are categories: scikit-learn's own conversion."""
    kind = getattr(column, "dtype", None)
    if hasattr(kind, "categories"):
        found = np.asarray(column)
        return found.astype(np.float64) if found.dtype.kind == "f" else found
    masked = hasattr(kind, "numpy_dtype") and hasattr(kind, "na_value")
    if (
        kind is not None
        and masked
        and (kind.kind == "f" or (kind.kind == "b" and column.isna().any()))
    ):
        return column.to_numpy(np.float64, na_value=np.nan)
    return np.asarray(column)
