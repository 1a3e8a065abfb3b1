"""NumPy's bfloat16, which is the package ml_dtypes': where it is not installed, there is no such array.

Importing this makes `np.dtype("bfloat16")` known. The format is the upper half of a float32.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from irkit.errors import UnsupportedError


def _found() -> np.dtype[Any] | None:
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        return None


BFLOAT16: np.dtype[Any] | None = _found()


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of this name. Raises UnsupportedError for bfloat16 where ml_dtypes is not installed."""
    if name == "bfloat16" and BFLOAT16 is None:
        raise UnsupportedError("arrays of bfloat16 without the package ml_dtypes")
    return np.dtype(name)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether elements are floats of 16 bits: float16 or bfloat16."""
    return dtype == np.float16 or (BFLOAT16 is not None and dtype == BFLOAT16)


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether elements are floats: NumPy calls those of bfloat16 void."""
    return dtype.kind == "f" or is_half(dtype)
