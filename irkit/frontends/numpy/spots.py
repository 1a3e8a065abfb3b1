"""Where a traced array lies: a view of a buffer, as its shadow has it.

NumPy itself decides about shapes, dtypes and views: each traced array has a shadow, a view of its buffer's
`base`, on which views are taken and which nobody reads. Where a view begins and how it strides is read off
it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.records import Buffer, ComplexView, View
from irkit.weights import Array

Terms = tuple[tuple[LoopSymbol, int, int], ...]
"""By how many elements a view moves with each symbol, and for which number of it the shadow stands."""


class Spot:
    """Where an array lies. `scalar`: NumPy has a number here, which is never written, and no array of no
    dimensions. `weak`: it stands for Python's int, float or bool."""

    def __init__(
        self,
        buffer: Buffer,
        shadow: Array,
        terms: Terms = (),
        scalar: bool = False,
        weak: type | None = None,
    ) -> None:
        self.buffer, self._shadow, self.terms = buffer, shadow, terms
        self.scalar, self.weak = scalar, weak
        self.outside = False
        """Whether it is that of the caller's own array, and not of a view."""

    @property
    def layout(self) -> Array:
        """The shadow, where symbols that are fixed by now have moved it to."""
        if any(s.fixed for s, _, _ in self.terms):
            moved = sum(c * (s.now - at) for s, c, at in self.terms if s.fixed)
            self._shadow = moved_by(self.buffer.base, self._shadow, moved)
            self.terms = tuple(t for t in self.terms if not t[0].fixed)
        return self._shadow

    @property
    def view(self) -> View:
        """Which elements of which buffer."""
        shadow = self.layout
        size = self.buffer.base.itemsize
        start = distance(self.buffer.base, shadow) if shadow.size else 0
        constant = start - sum(c * at for _, c, at in self.terms)
        offset = Affine.of(constant, {s: c for s, c, _ in self.terms})
        kind = ComplexView if shadow.dtype.kind == "c" else View
        return kind(self.buffer, offset, shadow.shape, tuple(s // size for s in shadow.strides))

    def viewed(self, shadow: Array, terms: Terms = ()) -> Spot:
        """The view whose shadow is `shadow`, a view of this one's, that moves with more symbols."""
        merged = {s: (c, at) for s, c, at in self.terms}
        for symbol, c, at in terms:
            merged[symbol] = (merged.get(symbol, (0, at))[0] + c, at)
        return Spot(self.buffer, shadow, tuple((s, c, at) for s, (c, at) in merged.items()))

    @property
    def known(self) -> Array | None:
        """Its elements, where they are known while the function is traced."""
        shadow, contents = self.layout, self.buffer.known
        if contents is None or self.terms or shadow.size == 0:
            return None
        offset = distance(self.buffer.base, shadow) * contents.itemsize
        memory: Any = contents.reshape(-1).view(np.uint8).data
        return np.ndarray(shadow.shape, shadow.dtype, memory, offset, shadow.strides)

    def owns(self, shadow: Array) -> bool:
        """Whether `shadow` is a view of the same memory."""
        return shadow.size == 0 or np.may_share_memory(shadow, self.buffer.base)


def address(array: Array) -> int:
    """Of the first element."""
    return cast(int, array.__array_interface__["data"][0])


def distance(base: Array, shadow: Array) -> int:
    """By how many elements a view begins after `base` does."""
    return (address(shadow) - address(base)) // base.itemsize


def moved_by(base: Array, shadow: Array, elements: int) -> Array:
    """`shadow`, a view of `base`, moved by so many elements; without elements it is nowhere."""
    if shadow.size == 0:
        return shadow
    offset = (distance(base, shadow) + elements) * base.itemsize
    memory: Any = base.reshape(-1).view(np.uint8).data
    return np.ndarray(shadow.shape, shadow.dtype, memory, offset, shadow.strides)
