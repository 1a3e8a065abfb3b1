"""Indices of loops in arithmetic: numbers that promote as Python's do."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.frontends.numpy.arrays import fresh
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.recorder import recorder


def weak_number(number: Any, kind: type) -> Any:
    """An index as a traced number that NumPy's promotion takes for Python's `kind`; others as they are."""
    if not isinstance(number, Index):
        return number
    r = recorder()
    value = r.cast(r.counter(number.affine), np.dtype(kind))
    return fresh(value, scalar=True, weak=kind)
