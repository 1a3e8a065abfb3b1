"""Sizes that are a multiple of the batch, in shape arrays known at import.

Such an array is of int64; batch × k is written as the mark DYNAMIC + (k - 1), far below any size that a
tensor has. So Gather, Concat and their like carry it along; what computes with it has its rule here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.dialects.types import DYNAMIC
from irkit.weights import Array

LARGEST = 1 << 40
"""No factor is larger."""


class NotAnExtent(Exception):
    """A number that is no multiple of the batch, and hangs on it."""


def mark(factor: int) -> int:
    """The size batch × `factor`."""
    if not 0 < factor < LARGEST:
        raise NotAnExtent
    return DYNAMIC + factor - 1


def factor_of(size: int) -> int:
    """k of batch × k; 0 for a plain number."""
    return size - DYNAMIC + 1 if size < DYNAMIC + LARGEST else 0


def has_marks(array: Array) -> bool:
    """Whether any number of an array of int64 is a multiple of the batch."""
    return array.dtype == np.int64 and bool((array < DYNAMIC + LARGEST).any())


def _sum(x: int, y: int) -> int:
    k, m = factor_of(x), factor_of(y)
    if k and m:
        return mark(k + m)
    if 0 in (x, y):
        return x or y
    return _plain(x, y, x + y)


def _difference(x: int, y: int) -> int:
    k, m = factor_of(x), factor_of(y)
    if k and m:
        return 0 if k == m else mark(k - m)
    return x if y == 0 else _plain(x, y, x - y)


def _product(x: int, y: int) -> int:
    k, m = factor_of(x), factor_of(y)
    if 0 in (x, y):
        return 0
    if k and not m:
        return mark(k * y)
    return mark(x * m) if m and not k else _plain(x, y, x * y)


def _quotient(x: int, y: int) -> int:
    """ONNX's division of integers truncates; only exact ones are sizes."""
    k, m = factor_of(x), factor_of(y)
    if k and m and not k % m:
        return k // m
    if k and not m and y > 0 and not k % y:
        return mark(k // y)
    return _plain(x, y, int(x / y) if y else 0)


def _equal(x: int, y: int) -> bool:
    """No size is negative; any other may be that of the batch."""
    if x == y:
        return True
    if (factor_of(x) and y < 0 and not factor_of(y)) or (
        factor_of(y) and x < 0 and not factor_of(x)
    ):
        return False
    return bool(_plain(x, y, x == y))


def _plain(x: int, y: int, result: int) -> int:
    if factor_of(x) or factor_of(y):
        raise NotAnExtent
    return result


RULES: dict[str, tuple[Callable[[int, int], int | bool], np.dtype[Any]]] = {
    "Add": (_sum, np.dtype(np.int64)),
    "Div": (_quotient, np.dtype(np.int64)),
    "Equal": (_equal, np.dtype(np.bool_)),
    "Mul": (_product, np.dtype(np.int64)),
    "Sub": (_difference, np.dtype(np.int64)),
}
"""Operator → its meaning of two sizes, and the type of its result."""


def computed(op: str, a: Array, b: Array) -> Array:
    """`op`, one of RULES, of two arrays of sizes. Raises NotAnExtent for what no rule says."""
    rule, dtype = RULES[op]
    both = np.broadcast_arrays(a, b)
    pairs = zip(both[0].ravel().tolist(), both[1].ravel().tolist(), strict=True)
    found: Array = np.empty(both[0].shape, dtype)
    found.ravel()[:] = [rule(x, y) for x, y in pairs]
    return found
