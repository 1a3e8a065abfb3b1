"""Delta debugging: what of a list is needed for a test to hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def minimal(items: Sequence[T], test: Callable[[list[T]], bool]) -> list[T]:
    """A sublist, in order, for which `test` holds and of which no single item can be left out.

    `test` holds for all of `items`, which is not tried. Ever smaller pieces are left out, half of the list
    first: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE
    28(2), 2002, of whose ddmin this tries the complements only.
    """
    kept = list(items)
    piece = max(len(kept) // 2, 1)
    while kept:
        removed = _removed(kept, piece, test)
        if piece == 1 and not removed:
            break
        piece = max(min(piece // 2, len(kept) // 2), 1)
    return kept


def _removed(kept: list[T], piece: int, test: Callable[[list[T]], bool]) -> bool:
    """Leave out of `kept`, in place, each run of `piece` items that the test does not need."""
    at, removed = 0, False
    while at < len(kept):
        fewer = kept[:at] + kept[at + piece :]
        if test(fewer):
            kept[:] = fewer
            removed = True
        else:
            at += piece
    return removed
