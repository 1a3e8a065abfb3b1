"""Sizes that are known when a program runs."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects.types import DYNAMIC
from irkit.weights import Array


def completed(static: Sequence[int], dynamic: Sequence[Array]) -> list[int]:
    """`static` with its DYNAMIC entries taken from `dynamic`, in order."""
    rest = iter(dynamic)
    return [int(next(rest)) if s == DYNAMIC else s for s in static]
