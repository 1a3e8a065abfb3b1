"""`np.sort` and `np.argsort` of long rows: NumPy's own, which sorts by vectors where rows are split in parts.

What irkit compiles merges runs, element by element; on a GPU each element is compared with all of its row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.structures import ArrayType

LONG = 2048
"""Elements of a row from which on NumPy sorts it."""
_PARAMETERS = ("a", "axis", "kind")


def is_long(extent: int) -> bool:
    """Whether rows of so many elements are NumPy's to sort."""
    return extent >= LONG


def _cost(a: Any, axis: int, kind: Any) -> float:
    """Nanoseconds, of NumPy's vectors."""
    return 0.3 * math.prod(a.shape) * math.log2(max(a.shape[axis], 2))


def _sorted(a: Any, axis: int, kind: Any) -> ArrayType:
    return ArrayType(a.shape, a.dtype)


def _indices(a: Any, axis: int, kind: Any) -> ArrayType:
    return ArrayType(a.shape, np.dtype(np.intp))


_WHY = "long rows are NumPy's to sort"
SORT = Annotation(
    np.sort, _PARAMETERS, writes=(), result=_sorted, cost=_cost, why=_WHY, title="numpy.sort"
)
ARGSORT = Annotation(
    np.argsort, _PARAMETERS, writes=(), result=_indices, cost=_cost, why=_WHY, title="numpy.argsort"
)
