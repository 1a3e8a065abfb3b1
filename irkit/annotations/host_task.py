"""A call of a function that irkit does not compile, as one task of a program of arrays."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.results import Returned, described
from irkit.annotations.structures import ArrayType, key_of, unpacked
from irkit.errors import UnsupportedError
from irkit.weights import Array


class HostTask:
    """One call. `arguments`: the structure of arguments, with slots for `inputs`; `returned`: that of
    results, which are written to the arrays that follow the inputs; `writes`: numbers of the inputs that it
    may write."""

    def __init__(
        self,
        annotation: Annotation,
        arguments: Any,
        inputs: Sequence[ArrayType],
        returned: Returned,
        writes: Sequence[int],
        place: str,
    ) -> None:
        self.annotation, self.arguments, self.inputs = annotation, arguments, tuple(inputs)
        self.returned, self.writes, self.place = returned, tuple(writes), place
        self._checked = False
        self._lock = threading.Lock()

    @property
    def __name__(self) -> str:
        """A symbol in the text of a program."""
        plain = self.annotation.name.rpartition(".")[2]
        return "".join(c if c.isascii() and c.isalnum() else "_" for c in plain)

    @property
    def checked(self) -> bool:
        """Whether a call was seen to write nothing but what it may."""
        return self._checked

    @property
    def bytes_in(self) -> int:
        """Of arrays that it is given."""
        return sum(t.nbytes for t in self.inputs)

    @property
    def bytes_out(self) -> int:
        """Of arrays that it returns, and of those that it may write."""
        return sum(t.nbytes for t in (*self.returned.types, *(self.inputs[n] for n in self.writes)))

    def same_as(self, other: HostTask) -> bool:
        """Whether both call the same function in the same way."""
        mine = (self.annotation.function, self.inputs, self.writes, key_of(self.arguments))
        theirs = (other.annotation.function, other.inputs, other.writes, key_of(other.arguments))
        return mine == theirs and self.returned.like(other.returned)

    def __call__(self, *arrays: Array) -> None:
        """Make the call on arrays as `inputs` and then `returned` have them.

        Raises what the function raises, UnsupportedError where it returns something else than was known, or
        (the first time) has written an array that it was not to write.
        """
        given, outputs = arrays[: len(self.inputs)], arrays[len(self.inputs) :]
        with self._lock:
            watched = (
                [] if self._checked else [n for n in range(len(given)) if n not in self.writes]
            )
        before = {n: given[n].tobytes() for n in watched}
        found = self._made(given)
        changed = [n for n, data in before.items() if given[n].tobytes() != data]
        if changed:
            raise self._refused(
                f"wrote {self._named(changed[0])}, which its annotation does not say"
            )
        self._checked = True
        for array, target in zip(found, outputs, strict=True):
            np.copyto(target, array)

    def _made(self, given: Sequence[Array]) -> list[Array]:
        """Call the function; the new arrays that it returned."""
        args, kwargs = unpacked(self.arguments, lambda slot: slot.given(given[slot.number]))
        with _Noted(self.note):
            result = self.annotation.function(*args, **kwargs)
        try:
            returned, made = described(self.annotation, result, given)
        except UnsupportedError as error:
            raise UnsupportedError(f"{self.place}: {error}") from None
        if not returned.like(self.returned):
            raise self._refused(f"returned {returned}, and {self.returned} was expected")
        return made

    @property
    def note(self) -> str:
        """What is added to an error that the function raises."""
        return (
            f"{self.place}: in '{self.annotation.name}', a task of the host; the arrays that the compiled "
            "function was given are as they were"
        )

    def _refused(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{self.place}: '{self.annotation.name}' {what}")

    def _named(self, number: int) -> str:
        """The parameter that has an input."""
        args, kwargs = self.arguments
        try:
            bound = self.annotation.bound(args, kwargs)
        except TypeError:
            bound = {}
        own = [name for name, v in bound.items() if getattr(v, "number", None) == number]
        return f"its argument '{own[0]}'" if own else f"array {number} of its arguments"


class _Noted:
    """Says of an error where it was raised."""

    def __init__(self, note: str) -> None:
        self._note = note

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            error.add_note(self._note)
