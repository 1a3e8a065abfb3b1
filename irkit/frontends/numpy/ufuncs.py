"""Which graph ops a universal function is: NumPy's own by the common table, those of SciPy by this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.frontends.array_ops import UFUNCS, Ops, complex_numbers

Rule = Callable[..., Any]
"""Ops and the operands, in the dtypes that NumPy chose, to the result."""


def complex_rule_of(ufunc: np.ufunc) -> Rule | None:
    """That of pairs of real and imaginary parts."""
    return complex_numbers.UFUNCS.get(ufunc.__name__)


def _erf(o: Ops[Any], x: Any) -> Any:
    return o(graph.ErfOp, x)


def _expit(o: Ops[Any], x: Any) -> Any:
    return o(graph.SigmoidOp, x)


SPECIAL: Mapping[str, Rule] = {"erf": _erf, "expit": _expit}
"""Universal functions of `scipy.special`."""


def rule_of(ufunc: np.ufunc) -> Rule | None:
    """The rule of a universal function; None for one that irkit has none for."""
    own = getattr(np, ufunc.__name__, None) is ufunc
    return UFUNCS.get(ufunc.__name__) if own else SPECIAL.get(ufunc.__name__)
