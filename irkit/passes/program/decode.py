"""Strided views of buffers as boxes of their elements, in another order.

A view is decoded under a shape of its buffer, its own or another of as many elements (which are the same
bytes): each of the view's strides is then a number of steps in one dimension, and the offset has a digit in
each. Where no shape is found that does this (diagonals, overlapping windows) there is no such box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from irkit.dialects.program.views import Affine, StridedView, first_of, row_major
from irkit.passes.program.places import Place


@dataclass(frozen=True)
class Box:
    """What a view shows: the elements at `place`, in another order.

    Of them, dimension `axes[k]` is the k-th dimension of a tensor, back to front if `reverse[k]`; those that
    `axes` leaves out have one element. That tensor, under shape `joined`, where dimensions of size 1 take the
    place of what is broadcast to `broadcast`, and then under shape `sizes`, is the view.
    """

    place: Place
    axes: tuple[int, ...]
    reverse: tuple[bool, ...]
    joined: tuple[int, ...]
    broadcast: tuple[int, ...]
    sizes: tuple[int, ...]


def decoded(view: StridedView, shape: Sequence[int]) -> Box | None:
    """The box that a view of a buffer of `shape` shows; None if it is none. The view is not empty."""
    dims = list(zip(view.sizes, view.strides, strict=True))
    for few in (dims, _coalesced(dims)):
        for under in (tuple(shape), *_shapes(few, math.prod(shape))):
            if (found := _under(view, few, under)) is not None:
                return found
    return None


def _coalesced(dims: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The dimensions of a view, those joined that are one run of steps; none of size 1."""
    found: list[tuple[int, int]] = []
    for size, stride in dims:
        if size == 1:
            continue
        if found and found[-1][1] == size * stride:
            found[-1] = found[-1][0] * size, stride
        else:
            found.append((size, stride))
    return found


def _shapes(dims: Sequence[tuple[int, int]], elements: int) -> Iterator[tuple[int, ...]]:
    """Shapes of so many elements under which a view may be a box: with dimensions of its strides, and of its
    strides' ends; and flat."""
    ends = {abs(s) for n, s in dims if n > 1 and s}
    for bounds in (ends, ends | {abs(s) * n for n, s in dims if n > 1 and s}):
        chain = [1]
        for bound in sorted(bounds):
            if bound > chain[-1] and bound % chain[-1] == 0 and elements % bound == 0:
                chain.append(bound)
        chain.append(elements)
        yield tuple(b // a for a, b in reversed(list(pairwise(chain))))
    yield (elements,)


def _under(
    view: StridedView, dims: Sequence[tuple[int, int]], shape: tuple[int, ...]
) -> Box | None:
    """The box under one shape of the buffer, of a view whose dimensions are `dims`."""
    unit = row_major(shape)
    counts, steps, axes, reverse = [1] * len(shape), [1] * len(shape), list[int](), list[bool]()
    lowest = view.offset
    for size, stride in dims:
        if size == 1 or stride == 0:
            continue
        axis = _axis(abs(stride), shape, unit)
        if axis is None or counts[axis] > 1:
            return None
        counts[axis], steps[axis] = size, abs(stride) // unit[axis]
        axes.append(axis)
        reverse.append(stride < 0)
        lowest = lowest.plus(Affine(min(stride, 0) * (size - 1)))
    lengths = [(n - 1) * s for n, s in zip(counts, steps, strict=True)]
    starts = _digits(lowest, shape, lengths)
    if starts is None:
        return None
    place = Place(shape, tuple(starts), tuple(counts), tuple(steps))
    return Box(
        place,
        tuple(axes),
        tuple(reverse),
        tuple(1 if stride == 0 else size for size, stride in dims),
        tuple(size for size, _ in dims),
        view.sizes,
    )


def _axis(stride: int, shape: Sequence[int], unit: Sequence[int]) -> int | None:
    """The outermost dimension of which a stride is a number of steps: further in it would leave that."""
    fits = (d for d, u in enumerate(unit) if shape[d] > 1 and stride % u == 0)
    return next(fits, None)


def _digits(offset: Affine, shape: Sequence[int], lengths: Sequence[int]) -> list[Affine] | None:
    """An offset as a start in each dimension, from which `lengths` stays inside in every iteration."""
    unit = row_major(shape)
    rest = offset.constant + sum(f * first_of(v) for v, f in offset.factors.items())
    digits = [Affine() for _ in shape]
    for d, u in enumerate(unit):
        digits[d] = Affine(rest // u)
        rest %= u
    ways = [_spread(factor, unit) for factor in offset.factors.values()]
    for chosen in product(*ways):
        starts = list(digits)
        for variable, spread in zip(offset.factors, chosen, strict=True):
            moved = Affine(-first_of(variable), {variable: 1})
            starts = [s.plus(moved, f) for s, f in zip(starts, spread, strict=True)]
        if all(map(_stays, starts, lengths, shape)):
            return starts
    return None


def _stays(start: Affine, length: int, size: int) -> bool:
    low, high = start.bounds()
    return low >= 0 and high + length < size


def _spread(factor: int, unit: Sequence[int]) -> list[tuple[int, ...]]:
    """Ways to write a factor as so many steps in each dimension: rounded down or up in all but the last."""
    ways: list[tuple[tuple[int, ...], int]] = [((), factor)]
    for u in unit:
        ways = [
            ((*steps, q), rest - q * u)
            for steps, rest in ways
            for q in sorted({rest // u, -(-rest // u)}, key=abs)
        ]
    return [steps for steps, rest in ways if rest == 0]
