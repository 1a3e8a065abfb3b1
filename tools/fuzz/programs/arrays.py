"""Random shapes, arrays and element types."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from irkit.dialects.types import numpy_dtype, ui8, ui16, ui32, ui64

FLOATS = (f32, f64, f16)
INTEGERS = (i8, i16, i32, i64, ui8, ui16, ui32, ui64)
ELEMENTS = (*FLOATS, i1, *INTEGERS)
# How often each is drawn. Of f16 nothing can be scheduled, as yet.
WEIGHTS = (12.0, 4.0, 0.2, 2.0, *(1.0,) * len(INTEGERS))
EXTENTS = (1, 1, 2, 3, 4, 5, 8)
MOST_ELEMENTS = 2048


class Draw:
    """A random source: Python's for choices, NumPy's for arrays, of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        # Whether inputs have NaN, infinities, zeros of both signs and denormals among them.
        self.special = self.random.random() < 0.15
        # Whether floats are whole numbers, whose sums are exact, or any.
        self.whole = self.random.random() < 0.7

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.random.random() < probability

    def element(self) -> Attribute:
        """An element type, of an input or to cast to."""
        return self.random.choices(ELEMENTS, WEIGHTS)[0]

    def shape(self, most: int = 5) -> list[int]:
        """A shape of rank 0 to `most`; extents of 1 are frequent, one of 0 is rare."""
        rank = self.random.choices(range(most + 1), (1, 3, 5, 4, 3, 2)[: most + 1])[0]
        shape = [self.random.choice(EXTENTS) for _ in range(rank)]
        while int(np.prod(shape)) > MOST_ELEMENTS:
            shape[self.random.randrange(rank)] = 1
        if shape and self.chance(0.004):
            shape[self.random.randrange(rank)] = 0
        return shape

    def array(self, element: Attribute, shape: Sequence[int]) -> np.ndarray:
        """Values of a type: small whole numbers mostly, for integers now and then any."""
        dtype = numpy_dtype(element)
        if dtype.kind == "b":
            return np.asarray(self.rng.integers(0, 2, shape), dtype)
        if dtype.kind == "f":
            return np.asarray(self._floats(shape), dtype)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if self.chance(0.1):
            return np.asarray(self.rng.integers(low, high, shape, dtype=dtype, endpoint=True))
        return np.asarray(self.rng.integers(max(low, -3), 5, shape), dtype)

    def _floats(self, shape: Sequence[int]) -> np.ndarray:
        if self.whole or self.chance(0.3):
            return np.asarray(self.rng.integers(-3, 4, shape), np.float64)
        return np.clip(self.rng.standard_normal(shape), -4, 4)

    def specials(self, array: np.ndarray) -> np.ndarray:
        """An input with some of its floats made special ones, in a program that has such."""
        if not self.special or array.dtype.kind != "f" or not array.size:
            return array
        kinds = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], array.dtype)
        where = self.rng.random(array.shape) < 0.2
        return np.where(where, self.rng.choice(kinds, array.shape), array)

    def axes(self, count: int) -> list[int]:
        """Some of `count` axes, in order; at least one."""
        return sorted(self.random.sample(range(count), self.random.randint(1, count)))
