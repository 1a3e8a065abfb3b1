"""Where an array's elements are: what a user's array says of itself."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, cast

import numpy as np

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.schedule.host.model import Region, Space


@dataclass(frozen=True)
class Located:
    """An array's memory: `address` of its first element, `shape`, `strides` in bytes, and the NumPy
    name of its elements' type. `root` are the first byte, and the one behind the last, of the
    allocation that it is a part of, as far as that is known.
    """

    space: Space
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    readonly: bool
    root: tuple[int, int]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def region(self, buffer: int = 0) -> Region:
        """Its bytes, counted from address 0."""
        return Region.of(buffer, self.address, self.shape, self.strides, self.itemsize)


def locate(value: Any) -> Located | None:
    """Where an array is; None for what is no array. Raises InvalidInputError for arrays of Python
    objects."""
    facts = getattr(value, "__cuda_array_interface__", None)
    if facts is not None:
        return _on_device(cast("dict[str, Any]", facts))
    return _on_host(cast("np.ndarray[Any, Any]", value)) if isinstance(value, np.ndarray) else None


def steps_of(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-ordered array."""
    steps = [itemsize]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * size)
    return tuple(reversed(steps)) if shape else ()


def contiguous(at: Located) -> bool:
    """Whether elements lie side by side in C order."""
    steps = zip(at.shape, at.strides, steps_of(at.shape, at.itemsize), strict=True)
    return 0 in at.shape or all(size < 2 or a == b for size, a, b in steps)


def check_copy(target: Located, source: Located) -> None:
    """Raises UnsupportedError where the bytes of `source`, as they lie, are not what `target` is to hold."""
    reason = ""
    if target.readonly:
        reason = "the target is read-only"
    elif target.dtype != source.dtype:
        reason = "a copy converts nothing: array.astype(...) does, array.view(...) takes bytes as they are"
    elif prod(target.shape) != prod(source.shape):
        reason = "arrays of as many elements are expected"
    elif not (contiguous(target) and contiguous(source)):
        reason = "C-contiguous arrays are expected"
    if reason:
        to, of = (f"{at.dtype}{list(at.shape)}" for at in (target, source))
        raise UnsupportedError(f"copy to {to} from {of}: {reason}")


def _on_device(facts: dict[str, Any]) -> Located:
    shape, dtype = tuple(map(int, facts["shape"])), np.dtype(str(facts["typestr"]))
    strides = facts.get("strides") or steps_of(shape, dtype.itemsize)
    address, readonly = facts["data"]
    found = Located("device", int(address), shape, tuple(strides), dtype, bool(readonly), (0, 0))
    return _with_root(found, found.region().hull)


def _on_host(value: np.ndarray[Any, Any]) -> Located:
    if value.dtype.hasobject:
        raise InvalidInputError(f"an array of Python objects ({value.dtype}) cannot be scheduled")
    owner = owner_of(value)
    readonly = not value.flags.writeable
    found = Located(
        "host", address_of(value), value.shape, value.strides, value.dtype, readonly, (0, 0)
    )
    whole = Region.of(0, address_of(owner), owner.shape, owner.strides, owner.itemsize)
    return _with_root(found, whole.hull)


def owner_of(array: Any) -> Any:
    """The array that has the memory of a host array; another array itself."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = cast("np.ndarray[Any, Any]", array).base
    return cast(Any, array)


_WORD = ctypes.c_size_t.from_address


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of a host array's first element: what `array.ctypes.data` says, in a tenth of the time."""
    return _WORD(id(array) + object.__basicsize__).value if _AT_HAND else array.ctypes.data


def _is_at_hand() -> bool:
    """Whether an array's object begins as all do, and then has the address (`PyArrayObject_fields.data`, the
    first field of NumPy's binary interface)."""
    whole = np.arange(7)
    places = [(a, _WORD(id(a) + object.__basicsize__).value) for a in (whole, whole[3:])]
    return all(found == a.ctypes.data for a, found in places)


_AT_HAND: Final = _is_at_hand()


def _with_root(found: Located, root: tuple[int, int]) -> Located:
    return Located(
        found.space, found.address, found.shape, found.strides, found.dtype, found.readonly, root
    )


Path = tuple[int, ...]


def asked_for(shape: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The sizes and the type of an array to be made. Raises InvalidInputError for what are none."""
    given: Any = cast(Any, shape if isinstance(shape, tuple | list) else (shape,))
    sizes = [operator.index(s) for s in given if hasattr(s, "__index__") and s >= 0]
    if len(sizes) != len(given):
        raise InvalidInputError(f"shape {shape!r}: a size, or a tuple of sizes, is expected")
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise InvalidInputError(f"dtype {dtype!r}: NumPy has no such type") from None
    if found.hasobject:
        raise InvalidInputError(f"an array of Python objects ({found}) cannot be scheduled")
    return tuple(sizes), found


def arrays_in(values: Sequence[Any], path: Path = ()) -> Iterator[tuple[Path, Any, Located]]:
    """The arrays among arguments, those in tuples and lists too: where they stand, and where they are."""
    for number, value in enumerate(values):
        here = (*path, number)
        if isinstance(value, (tuple, list)):
            yield from arrays_in(cast("Sequence[Any]", value), here)
            continue
        found = locate(value)
        if found is not None:
            yield here, value, found
