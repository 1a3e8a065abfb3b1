"""What was inferred of a kernel's typed code, held against its machine code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irkit.dags.inference.machine_effects import machine_effects
from irkit.dags.inference.memory_values import Root, kinds_of
from irkit.dags.inference.numba_effects import Effects
from irkit.errors import InternalError, UnsupportedError


def pointers_of(types: Sequence[Any]) -> tuple[dict[int, Root], int]:
    """Which parameter of the machine code points to the elements of which argument, and how many parameters
    there are: Numba hands an array over as 5 words, of which the last is the pointer, and two for each
    dimension.
    """
    found: dict[int, Root] = {}
    at = 0
    for number, typed in enumerate(types):
        for path, words, pointer in _words(typed, ()):
            if pointer is not None:
                found[at + pointer] = Root(number, path)
            at += words
    return found, at


def _words(typed: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int, int | None]]:
    """The leaves of an argument: path, number of parameters, which of them is a pointer."""
    kinds = kinds_of(typed)
    if "BaseTuple" in kinds:
        for number, item in enumerate(typed.types):
            yield from _words(item, (*path, number))
    elif "Array" in kinds:
        yield path, 5 + 2 * typed.ndim, 4
    elif "Record" in kinds or "CPointer" in kinds:
        yield path, 1, 0
    else:
        yield path, 2 if "Complex" in kinds else 1, None


def check_machine_code(name: str, types: Sequence[Any], effects: Effects, ptx: str) -> None:
    """Machine code may write no more than was inferred.

    Raises UnsupportedError where it stores to addresses of none of the kernel's arrays, InternalError
    where it writes an array that was not inferred to be written, or reads one not inferred to be read.
    """
    found = machine_effects(ptx)
    pointers, words = pointers_of(types)
    if words != found.parameters:
        raise InternalError(
            f"kernel '{name}': {words} words of arguments, and {found.parameters} parameters in its "
            "machine code"
        )
    unbounded = found.unbounded(pointers.keys())
    if unbounded and not effects.captured:
        raise UnsupportedError(
            f"kernel '{name}': it writes through an address that is of none of its arrays, so what it writes "
            "cannot be bounded",
            unbounded[:3],
        )
    for what, seen, inferred in (
        ("write", found.writes, effects.writes),
        ("read", found.reads, effects.reads),
    ):
        missed = {pointers[n] for n in seen if n in pointers} - inferred
        if missed:
            number = min(missed).number
            raise InternalError(
                f"kernel '{name}': its machine code may {what} argument {number}, which was not inferred"
            )
