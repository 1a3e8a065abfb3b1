"""What users say of losses, rates and keys: numbers and arrays, or one clear error."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeGuard

import numpy as np

from irkit.errors import UnsupportedError


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number of Python's or NumPy's that the trace does not compute."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_share(what: str, value: object) -> None:
    """Raises UnsupportedError for what is no number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise UnsupportedError(f"{what}={value!r}: expected a number from 0 to 1")


def check_array(what: str, value: Any) -> None:
    """Raises UnsupportedError for what is no array of booleans, integers or floats."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise UnsupportedError(f"{what} of {type(value).__name__}: expected an array")
    if value.dtype.kind not in "biu" and not _has_fractions(value.dtype):
        raise UnsupportedError(f"{what} of {value.dtype}: expected an array of numbers")


def check_floats(what: str, value: Any) -> None:
    """Raises UnsupportedError for what is no array of floats."""
    check_array(what, value)
    if not _has_fractions(value.dtype):
        raise UnsupportedError(f"{what} of {value.dtype}: expected floats")


def _has_fractions(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of floats, of which NumPy does not know bfloat16 for one."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def check_finite(what: str, value: object) -> None:
    """Raises UnsupportedError for what is no finite number."""
    if not is_number(value) or not isfinite(value):
        raise UnsupportedError(f"{what} {value!r}: expected a number")


def check_count(what: str, value: object, name: str) -> None:
    """Raises UnsupportedError for what is no whole number of 1 or more; `name`: of what is counted."""
    if not is_whole(value) or value < 1:
        raise UnsupportedError(f"{what}: {value!r} {name}: expected 1 or more, a whole number")


def weights_of(what: str, value: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Weights, of NumPy or the trace or a list of numbers, in `dtype`. Raises UnsupportedError for what has
    no numbers, and for what does not go together with `shape`."""
    listed = type(value) in (list, tuple, int, float)
    found: Any = np.array(value) if listed else value
    kind = found.dtype.kind if hasattr(found, "dtype") else None
    if kind is None or kind not in "biuf":
        said = type(value).__name__ if kind is None else str(found.dtype)
        raise UnsupportedError(f"{what} of {said}: expected an array of numbers")
    tail = tuple(shape)[len(shape) - found.ndim :] if found.ndim <= len(shape) else None
    if tail is None or any(n not in (1, m) for n, m in zip(found.shape, tail, strict=True)):
        raise UnsupportedError(
            f"{what} of shape {list(found.shape)}: expected {list(shape)}, or what broadcasts to it"
        )
    return found.astype(dtype)
