"""Places: boxes of a buffer that is looked at under some shape, and how two of them lie to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from irkit.dialects.program.views import Affine, row_major

# Buffers of up to this many elements are compared element by element where nothing shorter decides.
_ENUMERATED = 1 << 16


@dataclass(frozen=True)
class Place:
    """Elements `starts[d] + i * steps[d]`, `i < counts[d]`, of each dimension d of a buffer of `shape`.

    Steps are 1 or more; starts may hang on the variables of loops.
    """

    shape: tuple[int, ...]
    starts: tuple[Affine, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]

    def is_static(self) -> bool:
        """Whether it is the same in every iteration."""
        return all(s.is_constant for s in self.starts)

    def is_whole(self) -> bool:
        """Whether it is all of the buffer."""
        return self.counts == self.shape

    def flat(self) -> tuple[Affine, int]:
        """Its first element, and how far the last lies behind it."""
        strides = row_major(self.shape)
        first, length = Affine(), 0
        for start, count, step, stride in zip(
            self.starts, self.counts, self.steps, strides, strict=True
        ):
            first = first.plus(start, stride)
            length += (count - 1) * step * stride
        return first, length


class Relation(Enum):
    """How a place lies to another."""

    APART = auto()
    """They share no element."""
    INSIDE = auto()
    """All of it is in the other, in the other's dimensions."""
    MEETS = auto()
    """Neither is known."""


def whole(shape: Sequence[int]) -> Place:
    """All of a buffer."""
    return Place(tuple(shape), (Affine(),) * len(shape), tuple(shape), (1,) * len(shape))


def relation(a: Place, b: Place) -> Relation:
    """How `a` lies to `b`, of the same buffer in the same iteration."""
    if a.shape == b.shape:
        dims = list(zip(*_dims(a), *_dims(b), strict=True))
        if any(_apart(*d) for d in dims):
            return Relation.APART
        return Relation.INSIDE if all(_inside(*d) for d in dims) else Relation.MEETS
    if _far(a, b) or _far(b, a):
        return Relation.APART
    return Relation.APART if _share_nothing(a, b) else Relation.MEETS


def inner(a: Place, b: Place) -> Place:
    """`a`, which lies inside `b`, as a place of what is at `b`."""
    starts, steps = list[Affine](), list[int]()
    for start, step, count, other, by in zip(
        a.starts, a.steps, a.counts, b.starts, b.steps, strict=True
    ):
        starts.append(Affine(start.plus(other, -1).constant // by))
        steps.append(step // by if count > 1 else 1)
    return Place(b.counts, tuple(starts), a.counts, tuple(steps))


def _dims(p: Place) -> tuple[Sequence[Affine], Sequence[int], Sequence[int]]:
    return p.starts, p.counts, p.steps


def _apart(a: Affine, n: int, s: int, b: Affine, m: int, t: int) -> bool:
    """Whether `a + s * i`, `i < n`, is never `b + t * j`, `j < m`."""
    difference = b.plus(a, -1)
    low, high = difference.bounds()
    if low > (n - 1) * s or high < -(m - 1) * t:
        return True
    common = math.gcd(s if n > 1 else 0, t if m > 1 else 0)
    return difference.is_constant and common > 0 and difference.constant % common != 0


def _inside(a: Affine, n: int, s: int, b: Affine, m: int, t: int) -> bool:
    """Whether every `a + s * i` is some `b + t * j`."""
    difference = a.plus(b, -1)
    if not difference.is_constant or difference.constant < 0 or difference.constant % t:
        return False
    if n > 1 and s % t:
        return False
    return difference.constant + (n - 1) * s <= (m - 1) * t


def _far(a: Place, b: Place) -> bool:
    """Whether all of `b` lies behind all of `a`."""
    (first, length), (other, _) = a.flat(), b.flat()
    return other.plus(first, -1).bounds()[0] > length


def _share_nothing(a: Place, b: Place) -> bool:
    small = math.prod(a.shape) <= _ENUMERATED
    return small and a.is_static() and b.is_static() and not (_marked(a) & _marked(b)).any()


def _marked(p: Place) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which elements of the buffer are at a place."""
    marks = np.zeros(p.shape, np.bool_)
    at = (
        s.constant + t * np.arange(n) for s, n, t in zip(p.starts, p.counts, p.steps, strict=True)
    )
    marks[np.ix_(*at)] = True
    return marks.reshape(math.prod(p.shape))
