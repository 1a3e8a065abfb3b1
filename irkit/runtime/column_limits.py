"""Limits of an input's columns, held on the host: by its extent where that is enough, else one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import Limits
from irkit.weights import Array


class ColumnLimits:
    """Limits of one input. `largest`: a magnitude that every column may have; `nan`: if all may be NaN."""

    def __init__(self, limits: Sequence[Limits], dtype: np.dtype[Any]) -> None:
        self._limits = [
            (np.array(f.low, dtype), np.array(f.high, dtype), np.array(f.nan), f.message)
            for f in limits
        ]
        ends = [end for low, high, _, _ in self._limits for end in (*-low, *high)]
        self.largest = float(min(ends, default=np.inf))
        self.nan = all(nan.all() for _, _, nan, _ in self._limits)

    def check(self, array: Array) -> None:
        """Raises InvalidInputError if a row of `array` (rows×columns) is not within."""
        for low, high, nan, message in self._limits:
            missing = np.isnan(array)
            within = np.where(missing, nan, (array >= low) & (array <= high)).all(axis=1)
            if not within.all():
                raise InvalidInputError(f"row {int(within.argmin())}: {message}")
