"""Objects of one call that are no arrays: labels of rows, columns of text, results of pandas.

A program has arrays. What is none stays with the host, and its number here, an array of one integer, passes
through the program in its place: so tasks of the host that make and take such objects are ordered as all
others are.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

from irkit.errors import UnsupportedError

_CALLS: dict[int, Held] = {}
_NUMBERS = itertools.count(1)


class Held:
    """What one call holds. `labels`: of rows, by number."""

    def __init__(self) -> None:
        self.labels: list[Any] = []
        self.objects: list[Any] = []
        self.number = next(_NUMBERS)
        self._lock = threading.Lock()

    def __enter__(self) -> Held:
        _CALLS[self.number] = self
        return self

    def __exit__(self, *error: object) -> None:
        del _CALLS[self.number]

    @staticmethod
    def of(number: Any) -> Held:
        """That of the call of this number. Raises UnsupportedError for a call that has ended."""
        found = _CALLS.get(int(number))
        if found is None:
            raise UnsupportedError("objects of a call that has ended are asked for")
        return found

    def keep(self, value: Any) -> int:
        """The number of one more object."""
        with self._lock:
            self.objects.append(value)
            return len(self.objects) - 1

    def object(self, number: Any) -> Any:
        """An object by its number."""
        return self.objects[int(number)]

    def label(self, labels: Any) -> int:
        """The number of labels: equal ones, with equal names and types, have one."""
        for number, known in enumerate(self.labels):
            if known is labels or (len(known) == len(labels) and known.identical(labels)):
                return number
        self.labels.append(labels)
        return len(self.labels) - 1


def same_objects(found: Sequence[Any], value: Any) -> int | None:
    """The place of an object itself among others."""
    return next((n for n, known in enumerate(found) if known is value), None)
