"""Which element types operands of graph ops may have. Each has a NumPy dtype, and so a meaning.

Neither f128, no integer of another width, no `index` and no complex number is among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from irkit.dialects.types import is_float, numpy_dtype, ui8, ui16, ui32, ui64


@dataclass(frozen=True)
class Elements:
    """A set of element types, and how messages call it."""

    text: str
    types: frozenset[Attribute]

    def __or__(self, other: Elements) -> Elements:
        return Elements(f"{self.text}, {other.text}", self.types | other.types)

    def __contains__(self, element: Attribute) -> bool:
        return element in self.types


BOOLEANS = Elements("i1", frozenset((i1,)))
SIGNED = Elements("i8 to i64", frozenset((i8, i16, i32, i64)))
UNSIGNED = Elements("ui8 to ui64", frozenset((ui8, ui16, ui32, ui64)))
WORDS = Elements("ui64", frozenset((ui64,)))
INTEGERS = SIGNED | UNSIGNED
FLOATS = Elements("bf16, f16 to f64", frozenset((bf16, f16, f32, f64)))
NUMBERS = INTEGERS | FLOATS
SINGLES = Elements("f32, f64", frozenset((f32, f64)))
ALL = BOOLEANS | NUMBERS
INDICES = Elements("i32, i64", frozenset((i32, i64)))
NODES = Elements("i32", frozenset((i32,)))


def holds(element: Attribute, value: float) -> bool:
    """Whether `value` stands for an element: any does for a float, to which it is rounded."""
    if is_float(element):
        return True
    low, high = 0, 1
    if element not in BOOLEANS:
        limits = np.iinfo(numpy_dtype(element))
        low, high = int(limits.min), int(limits.max)
    return value == np.floor(value) and low <= value <= high
