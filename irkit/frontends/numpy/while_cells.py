"""What a `while` loop on data hands on from round to round: a variable by value, and what a mask picked
by the array and the mask, which those picked by one mask share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.alike import same_bytes
from irkit.frontends.numpy.arrays import TracedArray, empty, fresh, is_traced, value_of
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.masked import MaskedArray, same_mask
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.picks import Pick
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Buffer, Value, View
from irkit.frontends.numpy.weak import weak_number
from irkit.weights import Array

Writes = list[tuple[Value, View]]
"""What is to be written to where, when everything has been read."""


@dataclass
class Cell:
    """Where a variable is kept from round to round: an array of its own."""

    array: TracedArray
    scalar: bool
    weak: type | None

    @staticmethod
    def of(value: Any) -> Cell:
        """One that has a copy of `value`, in C order."""
        array = _plain(value)
        made = empty(array.shape, array.dtype)
        recorder().write(value_of(array), made.spot.view)
        return Cell(made, array.spot.scalar, _weak_of(value, array))

    def copy(self) -> TracedArray:
        """What is in it now."""
        return fresh(value_of(self.array), self.scalar, self.weak)

    def after(self, name: str, value: Any) -> Writes:
        """What a round hands on. Raises UnsupportedError for one of another kind than was before."""
        array = _plain(value)
        have = (self.array.shape, self.array.dtype, self.scalar, self.weak)
        got = (array.shape, array.dtype, array.spot.scalar, _weak_of(value, array))
        if have[:3] == got[:3] and self.weak is not None and got[3] is None:
            # The next round takes NumPy's number, and must do with it what this one did with Python's.
            self.weak = None
        elif have != got:
            begin = f"; begin with np.{array.dtype}" if self.weak and array.spot.scalar else ""
            raise refused(
                f"'{name}' is {_said(*have)} before a round of a `while` loop on data, and {_said(*got)} "
                f"after it: it must stay what it is, from before the loop on{begin}"
            )
        return [(value_of(array), self.array.spot.view)]


@dataclass
class _Mask:
    """A mask that several variables were picked by. `now`: what it is in the round at hand; `new`: in the
    next."""

    cell: Cell
    first: Value
    now: Value | None = None
    new: Value | None = None

    def value(self) -> Value:
        """It, read once in a round: what is picked by it is told by that."""
        self.new = None
        if self.now is None:
            self.now = value_of(self.cell.array)
        return self.now


@dataclass
class MaskedCell:
    """Where what a mask picked is kept. `whole`: the array that it was picked from, or its elements, where
    they are known and stay what they are."""

    whole: Cell | Array
    mask: _Mask
    before: int
    begun: tuple[Value, Value] | None = None
    """The array and the mask that a round begins with."""

    def copy(self) -> MaskedArray:
        """What is in it now."""
        mask = self.mask.value()
        if isinstance(self.whole, Cell):
            self.begun = value_of(self.whole.array), mask
            return MaskedArray(self.begun[0], mask, self.before)
        return MaskedArray(recorder().constant(self.whole), mask, self.before, self.whole)

    def after(self, name: str, value: Any) -> Writes:
        """What a round hands on. Raises UnsupportedError for what is not picked from the same array, or not
        by the mask that picked the others."""
        if type(value) is not MaskedArray or value.before != self.before:
            raise refused(f"'{name}' is what a mask picked before a round alone: {_SAME}")
        masks = self._mask_after(name, value)
        if isinstance(self.whole, Cell):
            return [*masks, *self.whole.after(name, self._kept(value))]
        known = value.array.spot.known
        if known is None or not same_bytes(known, self.whole):
            raise refused(f"'{name}' is known before a round, and not after it: {_SAME}")
        return masks

    def _kept(self, value: MaskedArray) -> TracedArray:
        """The array for the next round: what was not picked, which nothing sees any more, stays as it was, so
        that where nothing is picked nothing is to be computed."""
        if self.begun is None:
            return value.array
        array, (old, mask) = value.array, self.begun
        alike = (mask.shape, old.dtype) == (old.shape, array.dtype) and array.shape == old.shape
        if not alike or mask.shape == () or same_mask(value.value, old):
            return array
        return LIBRARY.where(fresh(mask), array, fresh(old))

    def _mask_after(self, name: str, value: MaskedArray) -> Writes:
        if self.mask.new is None:
            self.mask.new, self.mask.now = value.same, None
            return self.mask.cell.after(name, value.held)
        if not same_mask(self.mask.new, value.same):
            raise refused(f"'{name}' is picked by another mask than others are: {_SAME}")
        return []


_SAME = "a `while` loop on data hands on what one mask picked from arrays of one kind"


def cells_of(values: Mapping[str, Any]) -> dict[str, Cell | MaskedCell]:
    """Where variables are kept."""
    masks: list[_Mask] = []
    return {
        n: _masked_cell(v, masks) if type(v) is MaskedArray else Cell.of(v)
        for n, v in values.items()
    }


def _masked_cell(value: MaskedArray, masks: list[_Mask]) -> MaskedCell:
    mask = next((m for m in masks if same_mask(m.first, value.same)), None)
    if mask is None:
        mask = _Mask(Cell.of(value.held), value.same)
        masks.append(mask)
    known = value.array.spot.known
    whole = Cell.of(value.array) if known is None else np.array(known, order="C")
    return MaskedCell(whole, mask, value.before)


def _plain(value: Any) -> TracedArray:
    found = weak_number(value, int)
    array = array_of(found)
    if array is not value and type(value) in (int, float):
        array.spot.weak = type(value)
    return array


def _weak_of(value: Any, array: TracedArray) -> type | None:
    kind = cast(Any, type(value))
    return kind if kind in (int, float) else array.spot.weak


def _said(shape: tuple[int, ...], dtype: np.dtype[Any], scalar: bool, weak: type | None) -> str:
    if weak is not None:
        return f"one of Python's numbers ({weak.__name__})"
    return f"a number of NumPy's ({dtype})" if scalar else f"an array {dtype}{list(shape)}"


def is_kept(value: Any, is_bound: bool) -> bool:
    """Whether a variable is handed on by value: an array that is only changed with `+=` is itself."""
    if type(value) is MaskedArray:
        return is_bound
    if is_traced(value):
        return is_bound or value.spot.scalar
    if isinstance(value, np.ndarray | np.generic):
        known = np.asarray(cast(Any, value))
        return known.dtype.kind in "biufc" and (is_bound or isinstance(value, np.generic))
    return type(value) in (int, float) or isinstance(value, Index)


class Copy(Pick):
    """That a buffer has a copy of what others may still see or write, where NumPy has the array itself."""

    def __init__(self, name: str, of: Sequence[Buffer]) -> None:
        super().__init__(())
        self._name, self.of = name, tuple(of)

    def copy_written(self) -> None:
        """Neither the array nor other copies of it have what NumPy has there."""
        self.ahead = self._error()
        for other in (p for b in self.of for p in b.picks):
            if other is not self:
                other.array_written()

    def array_written(self) -> None:
        """It is not what NumPy has."""
        self.behind = self._error()

    def _error(self) -> Exception:
        return refused(
            f"a write to an array that '{self._name}' of a `while` loop on data is too, in some round: bind "
            f"'{self._name}' to a copy"
        )
