"""`array[indices] = values` of many computed indices into much: NumPy's own, which takes a step for each.

What irkit compiles compares each element that may be written with each index.
"""

from __future__ import annotations

from typing import Any

from irkit.annotations.annotation import Annotation

MANY = 1 << 24
"""Comparisons from which on NumPy places values."""


def _place(array: Any, keys: Any, values: Any) -> None:
    array[keys] = values


def _nothing(array: Any, keys: Any, values: Any) -> None:
    """What it returns."""


PLACE = Annotation(
    _place,
    ("array", "keys", "values"),
    writes=("array",),
    result=_nothing,
    why="many computed indices are NumPy's to place",
    title="numpy.ndarray.__setitem__",
)
