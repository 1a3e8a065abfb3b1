"""What memory a value of a kernel may point to: the domain of the inference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Root(NamedTuple):
    """Memory from outside the kernel: argument `number`, item `path` of it where it is a tuple.

    Of a device array that the code names as a global, `number` is -1 and `path` has its identity.
    Memory that is none of these, such as what an address in a whole number points to, is `NOWHERE`.
    """

    number: int
    path: tuple[int, ...] = ()


CAPTURED = -1
NOWHERE = Root(-2)


@dataclass(frozen=True)
class Value:
    """What a variable may point to: `roots`, and for a tuple what each item does."""

    roots: frozenset[Root] = frozenset()
    items: tuple[Value, ...] | None = None

    @property
    def all(self) -> frozenset[Root]:
        """Everything that it or its items may point to."""
        return self.roots.union(*(item.all for item in self.items or ()))

    def join(self, other: Value) -> Value:
        """What one of two values may point to."""
        if self == other or not other.all:
            return self if self.all or self.items is not None else other
        if not self.all:
            return other
        if self.items is None or other.items is None or len(self.items) != len(other.items):
            return Value(self.all | other.all)
        items = tuple(a.join(b) for a, b in zip(self.items, other.items, strict=True))
        return Value(self.roots | other.roots, items)


NOTHING = Value()


def together(values: Iterable[Value]) -> Value:
    """All that any of the values may point to, as one."""
    return Value(frozenset[Root]().union(*(value.all for value in values)))


def kinds_of(typed: Any) -> set[str]:
    """Names of a Numba type's classes: those of Numba and of numba-cuda are alike, but not the same."""
    return {kind.__name__ for kind in type(typed).__mro__}


_NO_MEMORY = {
    "Number", "Boolean", "NoneType", "Literal", "DType", "NumberClass", "Module", "SliceType",
    "RangeType", "RangeIteratorType", "NPDatetime", "NPTimedelta", "UnicodeType", "EnumMember",
    "Omitted", "Function", "Dispatcher", "Dim3",
}  # fmt: skip
"""Types whose values hold no memory of others."""
_MEMORY = {"Buffer", "Record", "CPointer", "RawPointer", "EphemeralPointer", "ArrayCTypes"}
"""Types whose values are memory, wherever it is from."""


def holds_memory(typed: Any) -> bool:
    """Whether a value of this type may point to memory that it was made of."""
    kinds = kinds_of(typed)
    if "BaseTuple" in kinds:
        return any(holds_memory(item) for item in typed.types)
    return not kinds & _NO_MEMORY


def is_memory(typed: Any) -> bool:
    """Whether a value of this type is memory."""
    kinds = kinds_of(typed)
    if "BaseTuple" in kinds:
        return any(is_memory(item) for item in typed.types)
    return bool(kinds & _MEMORY)


def is_array(typed: Any) -> bool:
    """Whether this is the type of an array, as opposed to an element of one."""
    return "Array" in kinds_of(typed)


def argument_value(number: int, typed: Any, path: tuple[int, ...] = ()) -> Value:
    """What an argument of this type points to."""
    if "BaseTuple" in kinds_of(typed):
        items = (argument_value(number, item, (*path, n)) for n, item in enumerate(typed.types))
        return Value(items=tuple(items))
    return Value(frozenset([Root(number, path)])) if holds_memory(typed) else NOTHING
