"""Rows at computed numbers, `a[k]`: views to NumPy, copies here, for as long as nobody can tell them apart.

A copy that is written must go back to its place before anything reads that, as `a[k] += 1` does; one whose
array is written afterwards must not be read any more. All else is refused with the user's line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irkit.frontends.numpy.places import refused

PART = (
    "a write to a part of an array at a computed index, which was taken before and is a copy here: "
    "write to array[index] itself, or take array[index].copy()",
    "a write to an array of which a part at a computed index was taken before and is read after: "
    "take array[index].copy(), or take it again",
)
BITS = (
    "a write to a view of other dtype, which is a copy here: take array.view(dtype).copy()",
    "a write to an array of which a view of other dtype was taken before and is read after: "
    "take array.view(dtype).copy(), or take it again",
)
"""What is wrong with a read after the copy was written, and after the array was."""


@dataclass(eq=False)
class Pick:
    """That a buffer holds a copy of rows of another, where NumPy has a view. `ahead`: what is wrong with
    whoever reads the array now, as the copy was written; `behind`: with whoever reads the copy, as the array
    was."""

    keys: tuple[Any, ...]
    says: tuple[str, str] = PART
    ahead: Exception | None = None
    behind: Exception | None = None

    def copy_written(self) -> None:
        """The copy has another value than the array."""
        self.ahead = refused(self.says[0])

    def array_written(self) -> None:
        """The array may have another value than the copy."""
        self.behind = refused(self.says[1])

    def stored(self, keys: tuple[Any, ...]) -> None:
        """It is put back, if these are the keys by which it was taken."""
        if len(keys) == len(self.keys) and all(map(_same_key, keys, self.keys)):
            self.ahead = None


def _same_key(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, slice | int) and isinstance(b, slice | int) and a == b)


def check(problem: Exception | None) -> None:
    """Raise what is wrong with a read, if anything is."""
    if problem is not None:
        raise problem
