"""Anything array-like as a NumPy array on the host."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from irkit.bfloat16 import is_half
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.weights import Array


def to_host(value: Any) -> Array:
    """`value` itself, or a copy on the host of an array on a device."""
    if isinstance(value, np.ndarray):
        return cast(Array, value)
    for copy in ("cpu", "get", "numpy"):
        if hasattr(value, copy):
            return np.asarray(getattr(value, copy)())
    raise InvalidInputError(f"cannot read an array of type {type(value).__name__} back")


def as_array(name: str, value: Any, dtype: np.dtype[Any] | None = None) -> Array:
    """Anything array-like as an array of numbers, without changing a value.

    Python's own numbers have no dtype to keep: lists of them become `dtype` where NumPy calls that the
    same kind. Raises InvalidInputError, or UnsupportedError for sparse matrices.
    """
    if hasattr(value, "tocsr"):
        raise UnsupportedError(f"input '{name}': sparse matrices")
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInputError(f"input '{name}' is a masked array: fill its gaps first")
    bare = isinstance(value, list | tuple | int | float)
    array = _converted(name, value)
    if array.dtype.kind not in "fiub" and not is_half(array.dtype):
        raise InvalidInputError(f"input '{name}': expected numbers, got dtype {array.dtype}")
    if bare and dtype is not None and np.can_cast(array.dtype, dtype, "same_kind"):
        return array.astype(dtype)
    return array


def is_objects(value: Any) -> bool:
    """Whether `value` is an array of Python's objects."""
    return type(value) is np.ndarray and value.dtype.kind == "O"


def numbers_of_objects(info: ModelInfo, value: Array) -> Array:
    """An array of objects as float64, as scikit-learn, LightGBM and XGBoost convert it.

    Raises InvalidInputError for objects that are no numbers, and for a model that would compute in them.
    """
    place = f"input '{info.inputs[0]}'"
    refuse_own_types(info, place, value.dtype)
    try:
        return value.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{place} has an object that is no number: {error}") from None


def refuse_own_types(info: ModelInfo, place: str, dtype: np.dtype[Any]) -> None:
    """Raises InvalidInputError for a dtype that the source library would compute in."""
    if dtype.name in info.own_types:
        raise InvalidInputError(
            f"{place} has dtype {dtype.name}, in which the model would compute: convert it to float64 or "
            "float32 first"
        )


def _converted(name: str, value: Any) -> Array:
    try:
        if hasattr(value, "to_numpy"):
            value = value.to_numpy()
        elif hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            value = _exported(value)
        return np.asarray(cast(Any, value))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInputError(f"input '{name}' is no rectangular array: {error}") from None


def _exported(value: Any) -> Any:
    """What another library's array exports; NumPy says what types it has."""
    return np.from_dlpack(value)


def logarithm(probabilities: Any) -> Array:
    """log of each element, on the host; -infinity of 0."""
    with np.errstate(divide="ignore"):
        return np.log(to_host(probabilities))
