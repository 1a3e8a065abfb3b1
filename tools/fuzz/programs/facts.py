"""What is known of a random program's value: its range, and how far rounding may take it.

Levels add in another order, and processors have other `exp`s: a value is right if it lies within `error`.
What jumps (comparisons, rounding, indices) is made of values without error alone, or every difference of
one bit would become a finding. Interval arithmetic with absolute errors (R. E. Moore, 1966).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import Attribute

from irkit.dialects.types import is_float, numpy_dtype

# Relative error of one operation: some units in the last place.
ROUNDING = {"f": 1e-6, "d": 2e-15, "e": 2e-3}
# Whole numbers up to here are sums of whatever order.
WHOLE = {"f": 2.0**22, "d": 2.0**50, "e": 2.0**9}
# What a value may be wrong by, relative to its range, for the rest of a program to mean anything.
MOST_WRONG = {"f": 1e-3, "d": 1e-3, "e": 5e-2}
# Far from where values, or the terms of a sum, are infinite.
LARGEST = {"f": 1e30, "d": 1e30, "e": 1e4}


@dataclass(frozen=True)
class Facts:
    """Finite elements lie in [low, high]; `error` is absolute, `whole` says that all are integers,
    `finite` that there is no NaN and no infinity among them."""

    low: float
    high: float
    error: float = 0.0
    whole: bool = True
    finite: bool = True

    @property
    def size(self) -> float:
        """Largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def exact(self) -> bool:
        """Whether every level must have the same bits."""
        return self.error == 0.0


def limits(element: Attribute) -> tuple[float, float]:
    """Lowest and highest value of an element type."""
    dtype = numpy_dtype(element)
    if dtype.kind == "b":
        return 0.0, 1.0
    if dtype.kind == "f":
        return -float(np.finfo(dtype).max), float(np.finfo(dtype).max)
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def settled(facts: Facts, element: Attribute, terms: int = 1) -> Facts | None:
    """`facts` of a result of `terms` operations as its type holds it; None if too little is known of it."""
    low, high = limits(element)
    if not is_float(element):
        fits = low <= facts.low and facts.high <= high
        return Facts(facts.low, facts.high) if fits else Facts(low, high)
    code = numpy_dtype(element).char
    if math.isnan(facts.low) or math.isnan(facts.high) or facts.size > LARGEST[code]:
        return None
    if facts.whole and facts.exact and facts.size <= WHOLE[code]:
        return facts
    error = facts.error + ROUNDING[code] * terms * facts.size
    if error > MOST_WRONG[code] * max(facts.size, 1e-30):
        return None
    return replace(facts, error=error, whole=False)


def hull(*all_facts: Facts) -> Facts:
    """What is known of an element that is one of several values'."""
    return Facts(
        min(f.low for f in all_facts),
        max(f.high for f in all_facts),
        max(f.error for f in all_facts),
        all(f.whole for f in all_facts),
        all(f.finite for f in all_facts),
    )


def added(x: Facts, y: Facts) -> Facts:
    """x + y"""
    return Facts(
        x.low + y.low,
        x.high + y.high,
        x.error + y.error,
        x.whole and y.whole,
        x.finite and y.finite,
    )


def negated(x: Facts) -> Facts:
    """-x"""
    return replace(x, low=-x.high, high=-x.low)


def multiplied(x: Facts, y: Facts) -> Facts:
    """x * y"""
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    error = x.size * y.error + y.size * x.error + x.error * y.error
    return Facts(min(corners), max(corners), error, x.whole and y.whole, x.finite and y.finite)


def summed(x: Facts, terms: int) -> Facts:
    """The sum of `terms` elements of x."""
    return replace(x, low=x.low * terms, high=x.high * terms, error=x.error * terms)


def of_array(array: np.ndarray) -> Facts:
    """Facts of a constant or an input."""
    if array.dtype.kind != "f":
        return Facts(float(array.min(initial=0)), float(array.max(initial=0)))
    known = array[np.isfinite(array)].astype(np.float64)
    whole = bool((known == np.round(known)).all())
    finite = len(known) == array.size
    return Facts(float(known.min(initial=0)), float(known.max(initial=0)), 0.0, whole, finite)
