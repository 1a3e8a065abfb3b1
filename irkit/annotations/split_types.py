"""How arguments and results of annotated functions are split and put together (split types of Mozart:
Palkar and Zaharia, "Optimizing data-intensive computations in existing libraries with split annotations",
SOSP 2019)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np


class SplitType:
    """How a value is cut into parts. Derive from it for values of a library of one's own; equal types (`==`)
    of one call are cut at the same places."""

    def size(self, value: Any) -> int | None:
        """How many units a value has, which can be cut apart; None: it is given whole to every part. Of an
        array it is asked with the ArrayType alone."""
        raise NotImplementedError

    def split(self, value: Any, start: int, stop: int) -> Any:
        """Units `start` to below `stop`: of an array a view, so that what is written is written to it."""
        raise NotImplementedError

    def merge(self, parts: Sequence[Any]) -> Any:
        """Results of parts, in order, as one."""
        raise NotImplementedError


def extents(value: Any) -> tuple[int, ...]:
    """The shape of an array, or of its ArrayType; () of what has none."""
    shape = getattr(value, "shape", ())
    return cast("tuple[int, ...]", shape) if isinstance(shape, tuple) else ()


@dataclass(frozen=True)
class Broadcast(SplitType):
    """A value that every part is given whole."""

    def size(self, value: Any) -> int | None:
        """None."""
        return None

    def split(self, value: Any, start: int, stop: int) -> Any:
        """The value."""
        return value

    def merge(self, parts: Sequence[Any]) -> Any:
        """What the first part gave."""
        return parts[0]


@dataclass(frozen=True)
class ArraySplit(SplitType):
    """Arrays cut along `axis`, which may count from the end. What is no array, or has no such axis, or has
    one of extent 1 (which NumPy broadcasts) where others have more, is given whole."""

    axis: int = 0

    def of_rank(self, rank: int) -> ArraySplit:
        """The same for arrays of so many dimensions, counted from the front."""
        return ArraySplit(self.axis + rank) if -rank <= self.axis < 0 else self

    def size(self, value: Any) -> int | None:
        """The extent; None of what is given whole."""
        shape = extents(value)
        if not -len(shape) <= self.axis < len(shape):
            return None
        extent = int(shape[self.axis])
        return None if extent == 1 else extent

    def split(self, value: Any, start: int, stop: int) -> Any:
        """A view."""
        key = [slice(None)] * value.ndim
        key[self.axis] = slice(start, stop)
        return value[tuple(key)]

    def merge(self, parts: Sequence[Any]) -> Any:
        """Concatenated."""
        return np.concatenate(parts, axis=self.axis)


@dataclass(frozen=True)
class RowSplit(SplitType):
    """Frames and series of pandas cut by rows."""

    def size(self, value: Any) -> int | None:
        """The rows; None of what has none."""
        return len(value) if hasattr(value, "iloc") else None

    def split(self, value: Any, start: int, stop: int) -> Any:
        """Rows by their place; labels stay with them."""
        return value.iloc[start:stop]

    def merge(self, parts: Sequence[Any]) -> Any:
        """Concatenated by pandas, labels kept."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.concat(list(parts))


@dataclass(frozen=True)
class Generic(SplitType):
    """A type that is left open, by name: within a call all of one name are split as one."""

    name: str


@dataclass(frozen=True)
class Elementwise(SplitType):
    """Arrays that a universal function broadcasts together: cut along the first axis of the result."""

    def of_rank(self, rank: int) -> SplitType:
        """For results of so many dimensions."""
        return ArraySplit(-rank) if rank else Broadcast()
