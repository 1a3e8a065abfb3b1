"""Memory of 16-bit floats for the emulators of rKernels: float32 to whoever indexes it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def _round_float16(x: Any) -> Any:
    return np.float32(np.float16(x))


def _round_bfloat16(x: Any) -> Any:
    return np.float32(ml_dtypes.bfloat16(x))


ROUND = {"round_float16": _round_float16, "round_bfloat16": _round_bfloat16}
"""Rounding, by the names that emitted modules have for it."""


class HalfMemory:
    """A flat view of an array of float16 or bfloat16."""

    dtype = np.dtype(np.float32)

    def __init__(self, array: Any) -> None:
        self.array = array.reshape(-1)

    def __len__(self) -> int:
        return self.array.size

    def __getitem__(self, index: Any) -> Any:
        found = np.asarray(self.array[index]).astype(np.float32)
        return np.float32(found) if found.ndim == 0 else found

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = np.asarray(value, np.float32).astype(self.array.dtype)
