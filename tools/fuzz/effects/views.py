"""Random views of an array, as NumPy's own indexing makes them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class View:
    """Elements of buffer number `buffer`, in elements; `moves` is what each loop adds per step of its
    variable."""

    buffer: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    moves: Mapping[int, int] = field(default_factory=dict[int, int])

    def of(self, buffers: list[Array], variables: list[int]) -> Array:
        """The view, where the loops are at `variables`."""
        flat = buffers[self.buffer].reshape(-1)
        at = self.offset + sum(f * variables[n] for n, f in self.moves.items())
        assert at >= 0
        assert 0 in self.sizes or at < flat.size
        steps = [s * flat.itemsize for s in self.strides]
        return as_strided(flat[at:], self.sizes, steps)


def random_view(
    rng: random.Random, buffer: int, shape: tuple[int, ...], loops: list[range]
) -> View:
    """A view of a buffer of `shape`; inside of loops, which run, perhaps one that moves with them."""
    base = np.arange(math.prod(shape)).reshape(shape)
    moves: dict[int, int] = {}
    shown: Array = base
    if loops and rng.random() < 0.7:
        shown, moves = _moving(rng, base, loops)
    for _ in range(rng.randrange(3)):
        shown = rng.choice(STEPS)(rng, shown)
    at = shown.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    begin = sum(factor * loops[n][0] for n, factor in moves.items())
    strides = tuple(s // base.itemsize for s in shown.strides)
    return View(buffer, at // base.itemsize - begin, shown.shape, strides, moves)


def _moving(rng: random.Random, base: Array, loops: list[range]) -> tuple[Array, dict[int, int]]:
    """A window of an array where it is first, and how it moves with some loops, forward or backward."""
    index, moves = [slice(None)] * base.ndim, dict[int, int]()
    for axis, size in enumerate(base.shape):
        number, times = rng.randrange(len(loops)), rng.choice((1, 1, 1, 2))
        span = (loops[number][-1] - loops[number][0]) * times
        if size <= span or rng.random() < 0.4:
            continue
        window = rng.randint(1, size - span)
        first = rng.randint(0, size - span - window)
        step = base.strides[axis] // base.itemsize * times
        if rng.random() < 0.3:
            first, step = first + span, -step
        index[axis] = slice(first, first + window)
        moves[number] = moves.get(number, 0) + step
    return base[(*index, ...)], moves


def _sliced(rng: random.Random, x: Array) -> Array:
    index: list[Any] = []
    for size in x.shape:
        kind = rng.randrange(5)
        if kind == 0 and size:
            index.append(rng.randrange(size))
        elif kind == 1:
            index.append(slice(None, None, rng.choice((-1, -2, 2, 3))))
        elif kind == 2 and size > 1:
            start = rng.randrange(size - 1)
            index.append(slice(start, rng.randint(start + 1, size)))
        else:
            index.append(slice(None))
    return x[(*index, ...)]


def _turned(rng: random.Random, x: Array) -> Array:
    return x.transpose(rng.sample(range(x.ndim), x.ndim))


def _wider(rng: random.Random, x: Array) -> Array:
    return x[..., None] if rng.random() < 0.5 else x[None]


def _repeated(rng: random.Random, x: Array) -> Array:
    return np.broadcast_to(x, (rng.randint(1, 3), *x.shape))


def _reshaped(rng: random.Random, x: Array) -> Array:
    factors = [n for n in range(1, x.size + 1) if x.size % n == 0] or [1]
    rows = rng.choice(factors)
    made = x.reshape(rows, x.size // rows) if rng.random() < 0.7 else x.reshape(x.size)
    return made if np.shares_memory(made, x) else x


def _diagonal(rng: random.Random, x: Array) -> Array:
    return x.diagonal() if x.ndim >= 2 else x


def _windows(rng: random.Random, x: Array) -> Array:
    if x.ndim != 1 or x.size < 3:
        return x
    return np.lib.stride_tricks.sliding_window_view(x, 2)


STEPS = (_sliced, _sliced, _sliced, _turned, _wider, _repeated, _reshaped, _diagonal, _windows)
