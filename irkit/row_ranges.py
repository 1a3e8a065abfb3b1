"""Ranges of numbers of rows: what the plans of a program with an open batch are for, one each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

Rows = tuple[int, int]
"""A range of numbers of rows of the batch, both ends included."""
NO_END = -1
"""The last number of a range without an end."""
ALL_ROWS: Rows = (0, NO_END)


def why_not_all(ranges: Sequence[Rows]) -> str | None:
    """Why `ranges`, in their order, are not for every number of rows, each just once; None if they are."""
    following = 0
    for first, last in ranges:
        if following == NO_END:
            return f"{called((first, last))} come behind a range without an end"
        if first != following:
            return f"{called((first, last))} come where those from {following} on are next"
        following = NO_END if last == NO_END else last + 1
    return None if following == NO_END else f"none is for {following} rows"


def is_in(ranged: Rows, rows: int) -> bool:
    """Whether a number of rows is in a range."""
    first, last = ranged
    return first <= rows and (last == NO_END or rows <= last)


def called(rows: Rows) -> str:
    """How messages and pictures call a range."""
    first, last = rows
    if last == NO_END:
        return f"rows {first} and more" if first else "any rows"
    return f"rows {first} to {last}"


def cost_at(costs: Mapping[int, float], rows: int, otherwise: float) -> float:
    """What is taken at `rows`, by what is taken at some numbers of them, in rising order: between two of
    these on a line, before the first as there, behind the last in proportion. `otherwise` where there are
    none."""
    if not costs:
        return otherwise
    known = list(costs)
    if rows > known[-1]:
        return costs[known[-1]] * rows / known[-1]
    at = bisect_left(known, rows)
    if at == 0 or known[at] == rows:
        return costs[known[at]]
    low, high = known[at - 1], known[at]
    return costs[low] + (costs[high] - costs[low]) * (rows - low) / (high - low)


T = TypeVar("T")


class Others(Generic[T]):
    """What there is one of for each range but the first, found by a number of rows.

    `ranges` are all, of every number of rows, and `values` those of all but the first: whoever is of the
    first asks here, and is not held.
    """

    def __init__(self, ranges: Sequence[Rows] = (ALL_ROWS,), values: Sequence[T] = ()) -> None:
        self.values = tuple(values)
        self._lasts = [last for _, last in ranges[:-1]]

    def of(self, rows: int, first: T) -> T:
        """The value of the range that `rows` is in; `first` where that is the first."""
        at = bisect_left(self._lasts, rows)
        return self.values[at - 1] if at else first
