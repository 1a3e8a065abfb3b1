"""What functions of the host were seen to return, when the function around them was run on copies."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.results import Returned, check_apart, described
from irkit.annotations.structures import (
    ArrayType,
    Slot,
    key_of,
    number_of_kind,
    packed,
    slots_in,
)
from irkit.errors import UnsupportedError
from irkit.weights import Array

ALIVE = 256
"""Results that are remembered, as long as somebody has them, to see whether one is returned again."""


class Learned:
    """What calls returned, by function, types of arrays, and all that is no array."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Returned | str] = {}
        self._results: list[weakref.ref[Array]] = []
        # Keys have identities of things, which must not be given to others meanwhile.
        self._held: list[Any] = []

    def find(
        self, annotation: Annotation, arguments: Any, types: Sequence[ArrayType]
    ) -> Returned | None:
        """What such a call returned, None where there was none. `types`: of arrays and NumPy's numbers.

        Raises UnsupportedError where what it returned has no form, or differed from call to call.
        """
        exact = all(s.kind in ("array", "scalar") for s in slots_in(arguments))
        found = self._known.get(_key(annotation, arguments, types, not exact))
        if isinstance(found, str):
            raise UnsupportedError(found)
        return found

    def call(self, annotation: Annotation, args: Any, kwargs: Any) -> Any:
        """Make a call, and note what it returns. Raises what it raises."""
        if annotation.callback:
            # It is known, and this run is none of the program's.
            return None
        given: list[Any] = []

        def slot_of(value: Any) -> Slot | None:
            kind = "array" if type(value) is np.ndarray else number_of_kind(value)
            if kind not in ("array", "scalar"):
                return None
            own = [n for n, a in enumerate(given) if a is value]
            if not own:
                given.append(value)
            return Slot(own[0] if own else len(given) - 1, kind)

        arguments = packed((args, kwargs), slot_of)
        types = [ArrayType.of(a) for a in given]
        result = annotation.function(*args, **kwargs)
        if given:
            self._held.append(arguments)
            found = self._described(annotation, result, given)
            for coarse in (False, True):
                self._note(_key(annotation, arguments, types, coarse), found, annotation)
        return result

    def _note(self, key: Hashable, found: Returned | str, annotation: Annotation) -> None:
        before = self._known.setdefault(key, found)
        if isinstance(before, str) or isinstance(found, str):
            self._known[key] = found if isinstance(found, str) else before
        elif not before.like(found):
            self._known[key] = (
                f"'{annotation.name}' returned {before}, and then {found} for arguments of the same types: "
                "what it returns hangs on values"
            )

    def _described(
        self, annotation: Annotation, result: Any, given: Sequence[Any]
    ) -> Returned | str:
        try:
            returned, made = described(annotation, result, given)
            alive = [a for a in (r() for r in self._results) if a is not None]
            for array in made:
                check_apart(annotation, array, alive)
        except UnsupportedError as error:
            return str(error)
        self._results = [
            weakref.ref(a) for a in [*alive, *made][-ALIVE:] if a.ndim or a.base is not None
        ]
        return returned


def _key(
    annotation: Annotation, arguments: Any, types: Sequence[ArrayType], coarse: bool
) -> Hashable:
    return (annotation.function, tuple(types), key_of(arguments, coarse))
