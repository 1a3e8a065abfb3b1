"""Operands of NumPy's functions: traced arrays, arrays that are known, Python's numbers, indices of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.arrays import (
    TracedArray,
    Varying,
    fresh,
    is_traced,
    kind_of_table,
    value_of,
)
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.weights import Array


@dataclass(frozen=True)
class Operand:
    """An operand: what it is, what NumPy's promotion is told of it, its shape."""

    given: Any
    kind: Any
    shape: tuple[int, ...]

    @property
    def is_complex(self) -> bool:
        """Whether it is of complex numbers."""
        return np.dtype(self.kind).kind == "c"

    @property
    def is_number(self) -> bool:
        """Whether it is one of NumPy's or Python's numbers, and no array."""
        return self.given.spot.scalar if is_traced(self.given) else self.shape == ()

    @property
    def known(self) -> Array | None:
        """Its elements, where they are the same in every call."""
        if is_traced(self.given):
            return self.given.spot.known
        return None if isinstance(self.given, Index) else np.asarray(self.given)

    def value(self, dtype: np.dtype[Any]) -> Value:
        """Its elements now, as `dtype`."""
        r = recorder()
        if is_traced(self.given):
            return r.cast(value_of(self.given), dtype)
        if isinstance(self.given, Index):
            return r.cast(r.counter(self.given.affine), dtype)
        if type(self.given) is np.ndarray:
            return r.cast(r.constant(self.given), dtype)
        return r.constant(np.array(self.given, dtype))


WEAK = (int, float, complex)


def operand(given: Any) -> Operand:
    """Anything that NumPy's functions take as an array of numbers.

    Raises UnsupportedError for what is none.
    """
    if isinstance(given, Varying):
        given = given.exact()
    given = elements_of(given)
    if is_traced(given):
        kind = given.spot.weak if given.spot.weak in WEAK else given.dtype
        return Operand(given, kind, given.shape)
    if isinstance(given, Index):
        return Operand(given, int, ())
    if type(given) in WEAK:
        return Operand(given, type(given), ())
    array = traced_list(cast("list[Any]", given)) if isinstance(given, list | tuple) else None
    if array is not None:
        return operand(array)
    check_plain(given)
    known: Array = np.asarray(cast(Any, given))
    if known.dtype.kind not in "biufc":
        raise refused(f"an array of dtype {known.dtype}: expected numbers or truth values")
    return Operand(known, known.dtype, known.shape)


def check_plain(given: Any) -> None:
    """Raises UnsupportedError for an array of a subclass, whose operators may be others (a matrix, a masked
    array)."""
    kind = cast(Any, type(given))
    if isinstance(given, np.ndarray) and kind is not np.ndarray:
        raise refused(
            f"a {kind.__module__}.{kind.__qualname__}, which computes otherwise than an array: give "
            "numpy.asarray of it"
        )


def elements_of(given: Any) -> Any:
    """Of a traced series its array; all else as it is."""
    return given.array if kind_of_table(given) == "Series" else given


def traced_list(given: Sequence[Any]) -> TracedArray | None:
    """A list with traced arrays in it as one; None where nothing in it is traced."""
    parts: list[Any] = [
        traced_list(cast("list[Any]", p)) if isinstance(p, list | tuple) else p for p in given
    ]
    if not any(is_traced(p) or isinstance(p, Index | Varying) for p in parts):
        return None
    plain = [g if p is None else p for g, p in zip(given, parts, strict=True)]
    stacked: Any = np.stack([array_of(p) for p in plain])
    return stacked


def array_of(given: Any) -> TracedArray:
    """Any operand as a traced array; what is one is not copied."""
    if isinstance(given, Varying):
        return given.exact()
    given = elements_of(given)
    if is_traced(given):
        return given
    found = operand(given)
    if is_traced(found.given):
        return found.given
    dtype = promoted([found])
    return fresh(found.value(dtype), scalar=type(given) is not np.ndarray)


def promoted(operands: Sequence[Operand]) -> np.dtype[Any]:
    """NumPy's common dtype; Python's numbers have a say only about the kind."""
    known = {int: 0, float: 0.0, complex: 0j}
    # A dtype beside a number of Python's is one of an array.
    return np.result_type(*[known.get(o.kind, o.kind) for o in operands])
