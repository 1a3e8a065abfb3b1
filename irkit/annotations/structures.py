"""Arguments and results of a call: structures of lists, tuples and dicts in which arrays have places."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from irkit.weights import Array

Kind = Literal["array", "scalar", "float", "int", "bool"]
"""An array, a number of NumPy's, one of Python's."""
PLAIN = (int, float, complex, str, bytes, bool, type(None), np.dtype, slice, type(...))


@dataclass(frozen=True)
class ArrayType:
    """What is known of an array before there is one."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @staticmethod
    def of(array: Any) -> ArrayType:
        """That of an array, or of a number of NumPy's."""
        return ArrayType(tuple(array.shape), np.dtype(array.dtype))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of such an array."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Argument:
    """A result that is the argument of a name, the same array."""

    parameter: str


@dataclass(frozen=True)
class Slot:
    """The place of array `number` in a structure."""

    number: int
    kind: Kind = "array"

    def given(self, array: Array) -> Any:
        """What stands here: the array, or the number that an array of no dimensions holds."""
        if self.kind == "array":
            return array
        return array[()] if self.kind == "scalar" else array.item()


def of_kind(value: object, *kinds: Any) -> bool:
    """`isinstance`, of what stays Any for whoever reads types."""
    return isinstance(value, kinds)


def mapped(structure: Any, change: Callable[[Any], Any]) -> Any:
    """A structure with what is no list, tuple or dict in it changed."""
    if isinstance(structure, dict):
        items = cast("dict[Any, Any]", structure)
        return {k: mapped(v, change) for k, v in items.items()}
    if isinstance(structure, list | tuple):
        parts = [mapped(v, change) for v in cast("list[Any]", structure)]
        return rebuilt(cast(Any, structure), parts)
    return change(structure)


def packed(structure: Any, slot_of: Callable[[Any], Slot | None]) -> Any:
    """A structure with slots in the places of arrays; `slot_of` gives None of what is none."""

    def change(value: Any) -> Any:
        slot = slot_of(value)
        return value if slot is None else slot

    return mapped(structure, change)


def unpacked(structure: Any, given: Callable[[Slot], Any]) -> Any:
    """A structure with `given` in the places of its slots."""
    return mapped(structure, lambda v: given(v) if isinstance(v, Slot) else v)


def slots_in(structure: Any) -> list[Slot]:
    """The slots of a structure, in order."""
    found: list[Slot] = []

    def note(slot: Slot) -> Slot:
        found.append(slot)
        return slot

    unpacked(structure, note)
    return found


def key_of(structure: Any, coarse: bool = False) -> Hashable:
    """What two structures that are alike share: numbers and text by value (`coarse`: Python's numbers by type
    alone), what else is no list, tuple or dict by identity."""
    if isinstance(structure, Slot):
        return structure if not coarse or structure.kind in ("array", "scalar") else structure.kind
    if isinstance(structure, dict):
        items = cast("dict[Any, Any]", structure)
        return ("dict", *((repr(k), key_of(v, coarse)) for k, v in items.items()))
    if isinstance(structure, list | tuple):
        parts = cast("list[Any]", structure)
        return (type(parts), *(key_of(v, coarse) for v in parts))
    if coarse and type(structure) in (int, float, bool):
        return type(structure).__name__
    if isinstance(structure, PLAIN):
        return type(cast(object, structure)), repr(cast(object, structure))
    return id(structure)


def number_of_kind(value: Any) -> Kind | None:
    """The kind of a number of Python's or NumPy's; None of anything else."""
    if isinstance(value, np.generic):
        return "scalar"
    found: dict[type, Kind] = {float: "float", int: "int", bool: "bool"}
    return found.get(type(cast(object, value)))


def rebuilt(like: Any, parts: Sequence[Any]) -> Any:
    """A list or tuple, named ones too, of the kind of `like`."""
    return like._make(parts) if hasattr(like, "_make") else type(like)(parts)


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same, to the bit."""
    if a.nbytes == 0:
        return True
    x, y = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    return bool(np.array_equal(x, y))
