"""Integers that LightGBM is given: arrays of them it copies to float32, data frames to what holds them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.data_frames import fitted_columns, is_data_frame
from irkit.runtime.host_arrays import as_array
from irkit.weights import Array


def integers_as_floats(info: ModelInfo, value: Any) -> Any:
    """`value`, with integers as the floats that LightGBM compares; arrays of floats are as they came.

    Raises InvalidInputError where `info.integers` is "narrow" and float32 would change one.
    """
    if type(value) is np.ndarray and value.dtype.kind == "f":
        return cast(Any, value)
    if is_data_frame(value):
        frame = fitted_columns(info, value)
        if frame.dtype.kind == "f" or info.integers == "narrow":
            return frame if frame.dtype.kind == "f" else _narrow(info, frame)
        return frame.astype(np.result_type(frame.dtype, np.float32))
    if hasattr(value, "dtype") and type(value) is not np.ndarray:
        return value
    found = as_array(info.inputs[0], value)
    return _narrow(info, found) if found.dtype.kind in "iub" else cast(Any, value)


def _narrow(info: ModelInfo, whole: Array) -> Array:
    rounded = whole.astype(np.float32)
    if info.integers == "float32":
        return rounded
    if (rounded.astype(np.float64) != whole.astype(np.float64)).any():
        raise InvalidInputError(
            f"input '{info.inputs[0]}' has integers beyond 2^24, which LightGBM within this model rounds to "
            "float32 and other parts do not: give floats"
        )
    return whole
