"""The neutral elements of max and of min."""

from __future__ import annotations

from typing import Any

import numpy as np


def least(dtype: np.dtype[Any]) -> float:
    """What no number of a type is below: minus infinity of floats, False of booleans."""
    if dtype.kind == "b":
        return False
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -np.inf


def greatest(dtype: np.dtype[Any]) -> float:
    """What no number of a type is above: infinity of floats, True of booleans."""
    if dtype.kind == "b":
        return True
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else np.inf
