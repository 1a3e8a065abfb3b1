"""What a function of the host returns: known from its annotation, or learnt from a call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.structures import (
    Argument,
    ArrayType,
    Kind,
    Slot,
    key_of,
    mapped,
    number_of_kind,
    unpacked,
)
from irkit.errors import UnsupportedError
from irkit.weights import Array

PYTHONS: Mapping[str, np.dtype[Any]] = {
    "float": np.dtype(np.float64),
    "int": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}


@dataclass(frozen=True)
class Same:
    """A result that is array `number` of the arguments, itself."""

    number: int


@dataclass(frozen=True)
class Returned:
    """The structure of what is returned, with a slot for each new array, whose types are `types`."""

    structure: Any
    types: tuple[ArrayType, ...]

    def like(self, other: Returned) -> bool:
        """Whether both say the same."""
        return self.types == other.types and self.key == other.key

    @cached_property
    def key(self) -> Hashable:
        """What those of one structure share: arguments that are returned are there by their numbers."""
        return key_of(
            mapped(self.structure, lambda v: f"same {v.number}" if isinstance(v, Same) else v)
        )

    def __str__(self) -> str:
        """As messages have it."""

        def shown(slot: Slot) -> _Shown:
            text = str(self.types[slot.number])
            return _Shown(text if slot.kind == "array" else f"a number ({text[:-2]})")

        return repr(unpacked(self.structure, shown))


class _Shown:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def described(
    annotation: Annotation, returned: Any, given: Sequence[Array]
) -> tuple[Returned, list[Array]]:
    """What a call returned, and the new arrays in it; `given` were its arguments.

    Raises UnsupportedError for what is no structure of arrays and numbers, and for arrays that share memory
    with arguments or one another.
    """
    made: list[Array] = []
    types: list[ArrayType] = []

    def new(array: Array, kind: Kind) -> Slot:
        made.append(array)
        types.append(ArrayType.of(array))
        return Slot(len(made) - 1, kind)

    def slot_of(value: Any) -> Any:
        kind = number_of_kind(value)
        if kind is not None:
            return new(_number(annotation, value, kind), kind)
        if type(value) is np.ndarray:
            own = next((n for n, a in enumerate(given) if a is value), None)
            if own is not None:
                return Same(own)
            check_apart(annotation, value, [*given, *made])
            return new(value, "array")
        if value is not None:
            raise UnsupportedError(
                f"'{annotation.name}' returned a {type(value).__module__}.{type(value).__qualname__}: "
                "expected arrays and numbers, and tuples, lists and dicts of them"
            )
        return None

    return Returned(mapped(returned, slot_of), tuple(types)), made


def _number(annotation: Annotation, value: Any, kind: Kind) -> Array:
    try:
        return np.asarray(value, PYTHONS.get(kind))
    except OverflowError:
        raise UnsupportedError(
            f"'{annotation.name}' returned the number {value}, which has no 64 bits"
        ) from None


def check_apart(annotation: Annotation, array: Array, others: Sequence[Array]) -> None:
    """Raises UnsupportedError for a result that shares memory with another array: what is written to one
    later would be seen in the other."""
    for other in others:
        if np.may_share_memory(array, other) and np.shares_memory(array, other):
            raise UnsupportedError(
                f"'{annotation.name}' returned a view of an array that it was given, or that it returned "
                "already: a task of the host returns arrays of its own, or an argument as it is"
            )


def declared(
    annotation: Annotation, args: Any, kwargs: Any, given: Sequence[ArrayType]
) -> Returned | None:
    """What the annotation says of a call with arguments of these types; None where it says nothing.

    Raises UnsupportedError for an annotation that gives no types.
    """
    rule = annotation.result
    if rule is None:
        return None
    bound = annotation.bound(args, kwargs)
    if callable(rule):
        whole, named = unpacked((args, kwargs), lambda slot: given[slot.number])
        try:
            found = rule(*whole, **named)
        except Exception as error:
            error.add_note(f"in the result that is known of '{annotation.name}'")
            raise
    else:
        found = given[_slot(annotation, bound, rule).number] if isinstance(rule, str) else rule
    types: list[ArrayType] = []

    def place_of(value: Any) -> Any:
        if isinstance(value, Argument):
            return Same(_slot(annotation, bound, value.parameter).number)
        if isinstance(value, ArrayType):
            types.append(ArrayType(tuple(value.shape), np.dtype(value.dtype)))
            return Slot(len(types) - 1, "array" if value.shape else "scalar")
        if value is not None:
            raise UnsupportedError(
                f"'{annotation.name}': its annotation's result gave a {type(value).__qualname__}: expected "
                "an ArrayType, Argument, or a structure of them"
            )
        return None

    return Returned(mapped(found, place_of), tuple(types))


def _slot(annotation: Annotation, bound: Mapping[str, Any], name: str) -> Slot:
    at = bound.get(name)
    if not isinstance(at, Slot):
        raise UnsupportedError(
            f"'{annotation.name}': its annotation says that it returns an array like '{name}', which is none"
        )
    return at
