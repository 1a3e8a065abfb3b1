"""NumPy as it is called with traced arrays, of which its own type stubs know nothing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

LIBRARY: Any = np
"""`numpy`; what its functions return of traced arrays is traced."""
OPERATORS: Any = operator
"""`operator`"""
