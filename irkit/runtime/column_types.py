"""Programs for data frames whose columns have several types, of which the model computes some apart."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping

from irkit.errors import InvalidInputError
from irkit.runtime.sized import SizedVariant
from irkit.runtime.variant import Variant

TYPES = "types-"
"""What names of such programs begin with, beside those for rows of one type."""
Types = tuple[str, ...]


class TypedPrograms:
    """The programs of a model by the types of its columns: those that are there, and those that `build`
    compiles when frames of such columns first come. Thread-safe."""

    def __init__(
        self,
        known: Mapping[Types, Variant | SizedVariant],
        build: Callable[[Types], Variant | SizedVariant] | None = None,
    ) -> None:
        self._known, self._build = dict(known), build
        self._lock = threading.Lock()

    def of(self, types: Types) -> Variant | SizedVariant:
        """The program for these types. Raises InvalidInputError if there is none, and none to be had."""
        with self._lock:
            found = self._known.get(types)
            if found is None and self._build is not None:
                found = self._known[types] = self._build(types)
        if found is None:
            raise InvalidInputError(
                "the data frame has float32 beside columns of other types, which the model would compute in "
                "their own type; this saved program has met no such columns: convert them first"
            )
        return found

    def saved(self) -> dict[str, Variant | SizedVariant]:
        """All that are there, by names for their files."""
        digests = {t: hashlib.sha256(" ".join(t).encode()).hexdigest() for t in self._known}
        return {f"{TYPES}{digests[t][:16]}": program for t, program in self._known.items()}
