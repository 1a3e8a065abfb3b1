"""NumPy as it is called with traced arrays, of which its own type stubs know nothing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

LIBRARY: Any = np
"""`numpy`; what its functions return of traced arrays is traced."""
OPERATORS: Any = operator
"""`operator`"""
WRITING = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
"""Functions that write an argument."""


def is_of_numpy(value: Any) -> bool:
    """Whether it is a function of `numpy` itself, or `as_strided`, which makes views as those do."""
    name = getattr(value, "__name__", None)
    own = isinstance(name, str) and getattr(np, name, None) is value
    return callable(value) and (own or value is np.lib.stride_tricks.as_strided)
