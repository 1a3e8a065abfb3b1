"""NumPy's bfloat16, which is the package ml_dtypes': where it is not installed, there is no such array.

Importing this makes `np.dtype("bfloat16")` known. The format is the upper half of a float32.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


STORED = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Element types by their names in safetensors files: all but floats of 8 bits and complex numbers."""


def load_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, those of bfloat16 too, which safetensors' own reader refuses.

    Raises KeyError for an element type that is not known, and what safetensors raises for a damaged file.
    """
    deserialize: Any = import_module("safetensors").deserialize
    return {
        name: np.frombuffer(view["data"], dtype_of(STORED[view["dtype"]])).reshape(view["shape"])
        for name, view in deserialize(data)
    }
