"""Indices as sums of multiples of indices, and what is known of their bounds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irkit.expressions.syntax import Apply, Expr, Name, Number

Bounds = tuple[int, int]
"""The least and the largest value, both included."""


@dataclass(frozen=True)
class Linear:
    """`constant` and multiples of indices; none is multiplied by 0."""

    constant: int
    terms: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: Linear) -> Linear:
        found = dict(self.terms)
        for name, factor in other.terms:
            found[name] = found.get(name, 0) + factor
        kept = tuple((n, f) for n, f in found.items() if f)
        return Linear(self.constant + other.constant, kept)

    def times(self, factor: int) -> Linear:
        """Its product with a number."""
        if factor == 0:
            return Linear(0)
        return Linear(self.constant * factor, tuple((n, f * factor) for n, f in self.terms))

    def __sub__(self, other: Linear) -> Linear:
        return self + other.times(-1)

    def factor(self, name: str) -> int:
        """What an index is multiplied by."""
        return dict(self.terms).get(name, 0)

    @property
    def names(self) -> list[str]:
        """The indices in it."""
        return [n for n, _ in self.terms]

    @property
    def single(self) -> str | None:
        """The index that it is, if it is one alone."""
        if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    def bounds(self, ranges: Mapping[str, Bounds]) -> Bounds:
        """Its least and largest value over a box of indices."""
        low = high = self.constant
        for name, factor in self.terms:
            ends = sorted(factor * e for e in ranges[name])
            low, high = low + ends[0], high + ends[1]
        return low, high

    def bounded(self, ranges: Mapping[str, Bounds], held: Sequence[Linear]) -> Bounds:
        """As `bounds`, where all of `held` are at least 0: of L and H that is L >= min(L - H) and L <=
        max(L + H)."""
        low, high = self.bounds(ranges)
        factors = {1, *(abs(f) for _, f in self.terms)}
        times = [one.times(f) for one in held[:8] for f in factors]
        known = [*times, *(a + b for a, b in itertools.combinations(times[:16], 2))]
        for one in known:
            low = max(low, (self - one).bounds(ranges)[0])
            high = min(high, (self + one).bounds(ranges)[1])
        return low, high


def linear(expr: Expr) -> Linear | None:
    """`expr` as such a sum; None if it is none."""
    if isinstance(expr, Number):
        return Linear(expr.value) if isinstance(expr.value, int) else None
    if isinstance(expr, Name):
        return Linear(0, ((expr.name, 1),))
    if not isinstance(expr, Apply):
        return None
    parts = [linear(a) for a in expr.arguments]
    known = [p for p in parts if p is not None]
    if len(known) != len(parts):
        return None
    return _applied(expr.function, known)


def _applied(function: str, parts: list[Linear]) -> Linear | None:
    if function == "neg":
        return parts[0].times(-1)
    if function in ("+", "-"):
        left, right = parts
        return left + right if function == "+" else left - right
    if function == "*":
        left, right = sorted(parts, key=lambda p: bool(p.terms))
        return None if left.terms else right.times(left.constant)
    if function == "/" and not parts[1].terms and parts[1].constant == 1:
        return parts[0]
    return None


def conditions(expr: Expr, held: bool = True) -> list[Linear]:
    """Sums that are at least 0 where a condition holds, or does not; what is no comparison of sums says
    nothing."""
    if not isinstance(expr, Apply):
        return []
    both, name = expr.arguments, expr.function
    if name == "!":
        return conditions(both[0], not held)
    if name == ("&&" if held else "||"):
        return [c for part in both for c in conditions(part, held)]
    left, right = (linear(a) for a in both) if len(both) == 2 else (None, None)
    sign = name if held else _NEGATED.get(name, "")
    if left is None or right is None or sign not in _NEGATED:
        return []
    return _comparison(sign, left, right)


_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _comparison(sign: str, left: Linear, right: Linear) -> list[Linear]:
    more, less = left - right, right - left
    one = Linear(1)
    return {
        ">=": [more],
        "<=": [less],
        ">": [more - one],
        "<": [less - one],
        "==": [more, less],
        "!=": [],
    }[sign]


def bounds_of(expr: Expr, ranges: Mapping[str, Bounds], held: Sequence[Linear]) -> Bounds | None:
    """The least and largest value that an index may have, where all of `held` are at least 0; None if that
    hangs on values of tensors. The least is above the largest where they are never all at least 0."""
    known = linear(expr)
    if known is not None:
        return known.bounded(ranges, held)
    if not isinstance(expr, Apply) or len(expr.arguments) != 2:
        return None
    parts = [bounds_of(a, ranges, held) for a in expr.arguments]
    left, right = parts
    if left is None or right is None:
        return None
    for part in (left, right):
        if part[0] > part[1]:
            return part
    if expr.function in ("/", "%"):
        return _divided(expr.function, left, right)
    corners = {
        "+": [left[0] + right[0], left[1] + right[1]],
        "-": [left[0] - right[1], left[1] - right[0]],
        "*": [a * b for a in left for b in right],
        "max": [max(left[0], right[0]), max(left[1], right[1])],
        "min": [min(left[0], right[0]), min(left[1], right[1])],
    }.get(expr.function)
    return None if corners is None else (min(corners), max(corners))


def _divided(function: str, left: Bounds, right: Bounds) -> Bounds | None:
    if right[0] != right[1] or right[0] <= 0:
        return None
    by = right[0]
    if function == "/":
        return left[0] // by, left[1] // by
    if left[0] // by == left[1] // by:
        return left[0] % by, left[1] % by
    return 0, by - 1
