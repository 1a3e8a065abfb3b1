"""Integers of 2 and 4 bits: NumPy's arrays of them are the package ml_dtypes', and a program has bytes."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from irkit.errors import UnsupportedError


@dataclass(frozen=True)
class NarrowInteger:
    """One such type; signed ones are in two's complement."""

    name: str
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        """The least of its integers."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest of its integers."""
        return self.low + (1 << self.bits) - 1

    @property
    def wide(self) -> np.dtype[Any]:
        """The bytes in which a program has it."""
        return np.dtype(np.int8 if self.signed else np.uint8)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's. Raises UnsupportedError where ml_dtypes is not installed."""
        try:
            return np.dtype(getattr(import_module("ml_dtypes"), self.name))
        except (ImportError, AttributeError):
            raise UnsupportedError(f"arrays of {self.name} without the package ml_dtypes") from None


NARROW = {
    f"{'' if signed else 'u'}int{bits}": NarrowInteger(
        f"{'' if signed else 'u'}int{bits}", bits, signed
    )
    for bits in (2, 4)
    for signed in (True, False)
}
"""All of them by name."""


def narrow_of(dtype: np.dtype[Any]) -> NarrowInteger | None:
    """Which of them an array's elements are."""
    return NARROW.get(dtype.name)
