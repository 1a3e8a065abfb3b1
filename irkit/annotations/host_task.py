"""A call of a function that irkit does not compile, as one task of a program of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.cuts import cut_of
from irkit.annotations.results import Returned, described
from irkit.annotations.split_types import Broadcast
from irkit.annotations.structures import ArrayType, key_of, same_bytes, unpacked
from irkit.annotations.workers import in_parts, ranges
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
        self._types = (*self.inputs, *returned.types)
        # Calls that are made in parts have parts of the program's own arrays.
        whole = self.is_complex
        self.cut = None if whole else cut_of(annotation, arguments, inputs, returned, writes)
        """How it is made in parts, if it can be."""
        self._checked = False

    @property
    def __name__(self) -> str:
        """A symbol in the text of a program."""
        plain = self.annotation.name.rpartition(".")[2]
        return "".join(c if c.isascii() and c.isalnum() else "_" for c in plain)

    @property
    def is_complex(self) -> bool:
        """Whether it takes or returns complex numbers."""
        return any(t.dtype.kind == "c" for t in self._types)

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

    def cost_ns(self) -> float | None:
        """Nanoseconds that the annotation estimates for the call; None where it says nothing.

        Raises UnsupportedError where what it says is no time, and what the estimate raises.
        """
        return self._estimated(self.annotation.cost)

    def device_cost_ns(self) -> float | None:
        """The same of its device twin."""
        return self._estimated(self.annotation.device_cost)

    def _estimated(self, estimate: Callable[..., float] | None) -> float | None:
        if estimate is None:
            return None
        args, kwargs = unpacked(self.arguments, lambda slot: self.inputs[slot.number])
        with _Noted(f"{self.place}: in the cost of '{self.annotation.name}'"):
            found = cast(object, estimate(*args, **kwargs))
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < 1e18:
            raise self._refused(f"costs {found!r}, by its annotation: expected nanoseconds")
        return float(found)

    def same_as(self, other: HostTask) -> bool:
        """Whether both call the same function in the same way."""
        mine = (self.annotation.function, self.inputs, self.writes, key_of(self.arguments))
        theirs = (other.annotation.function, other.inputs, other.writes, key_of(other.arguments))
        return mine == theirs and self.returned.like(other.returned)

    def __call__(self, *arrays: Array) -> None:
        """Make the call on arrays as `inputs` and then `returned` have them, complex numbers as two arrays,
        of their real and of their imaginary parts.

        Raises what the function raises, UnsupportedError where it returns something else than was known; the
        first time also where it has written an array that it was not to write, or where parts of it give
        other values than the whole.
        """
        if not self.is_complex:
            self._call(arrays)
            return
        left = iter(arrays)
        apart = [
            (next(left), next(left)) if t.dtype.kind == "c" else (next(left),) for t in self._types
        ]
        self._check_apart(apart)
        joined = [_joined(*parts) if len(parts) == 2 else parts[0] for parts in apart]
        self._call(joined)
        for number in (*self.writes, *range(len(self.inputs), len(joined))):
            if len(apart[number]) == 2:
                for part, own in zip(apart[number], _parts(joined[number]), strict=True):
                    np.copyto(part, own)

    def _call(self, arrays: Sequence[Array]) -> None:
        if not self._checked:
            self._check(arrays)
        elif self.cut is None:
            self.part(arrays)
        else:
            cuts = ranges(self.cut.units, self.unit_bytes, 1)
            in_parts(lambda start, stop: self.part(self.split(arrays, start, stop)), cuts)

    def _check_apart(self, apart: Sequence[tuple[Array, ...]]) -> None:
        """Complex numbers are put together for the call, so what is written to one array is not seen in
        another."""
        for number in self.writes:
            others = [a for n, parts in enumerate(apart) if n != number for a in parts]
            if any(np.may_share_memory(a, b) for a in apart[number] for b in others):
                raise self._refused("may write an array that overlaps another: give it copies")

    @property
    def unit_bytes(self) -> int:
        """Bytes of arrays that a unit of the call has."""
        return 0 if self.cut is None else (self.bytes_in + self.bytes_out) // max(1, self.cut.units)

    def split(self, arrays: Sequence[Array], start: int, stop: int) -> list[Array]:
        """The arrays of a part of the call."""
        cut = self.cut
        assert cut is not None
        return [
            a if cut.of(n) == Broadcast() else cut.of(n).split(a, start, stop)
            for n, a in enumerate(arrays)
        ]

    def part(self, arrays: Sequence[Array]) -> None:
        """The call, whole or of a part of its arrays."""
        given, outputs = arrays[: len(self.inputs)], arrays[len(self.inputs) :]
        args, kwargs = unpacked(self.arguments, lambda slot: slot.given(given[slot.number]))
        with _Noted(self.note):
            result = self.annotation.function(*args, **kwargs)
        try:
            returned, made = described(self.annotation, result, given)
        except UnsupportedError as error:
            raise UnsupportedError(f"{self.place}: {error}") from None
        types = tuple(ArrayType.of(a) for a in outputs)
        if returned.types != types or returned.key != self.returned.key:
            expected = Returned(self.returned.structure, types)
            raise self._refused(f"returned {returned}, and {expected} was expected")
        for array, target in zip(made, outputs, strict=True):
            np.copyto(target, array)

    def _overlapping(self, arrays: Sequence[Array]) -> bool:
        """Whether an array that is written is one with another one, in part or whole."""
        return any(
            np.may_share_memory(arrays[n], other)
            for n in self.writes
            for m, other in enumerate(arrays)
            if m != n
        )

    def _check(self, arrays: Sequence[Array]) -> None:
        """The first call: whole, with a look at what it must not write, and then in parts, on copies."""
        count = len(self.inputs)
        if self._overlapping(arrays):
            self.cut = None
        before = [np.array(a) for a in arrays]
        self.part(arrays)
        for number in range(count):
            meets = any(np.may_share_memory(arrays[number], arrays[w]) for w in self.writes)
            if not meets and not same_bytes(arrays[number], before[number]):
                raise self._refused(
                    f"wrote {self._named(number)}, which its annotation does not say"
                )
        cut = self.cut
        if cut is not None and cut.units > 1:
            third = -(-cut.units // 3)
            for start in range(0, cut.units, third):
                self.part(self.split(before, start, min(start + third, cut.units)))
            if not all(map(same_bytes, arrays, before)):
                raise self._refused(
                    "gives other values in parts than as a whole, against the split types of its annotation"
                )
        self._checked = True

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


def _joined(real: Array, imaginary: Array) -> Array:
    made: Any = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    made.real, made.imag = real, imaginary
    return made


def _parts(array: Any) -> tuple[Array, Array]:
    return array.real, array.imag


class _Noted:
    """Says of an error where it was raised."""

    def __init__(self, note: str) -> None:
        self._note = note

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            error.add_note(self._note)
