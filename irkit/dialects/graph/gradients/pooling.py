"""Gradients of pooling, tap by tap: a tap is one place in all windows, that is a slice of the padded input.

The maximum is at the first element in row-major order that is the largest, as in PyTorch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import (
    Builder,
    Composed,
    Linear,
    Maybe,
    Rule,
    Rules,
    total,
)
from irkit.dialects.graph.gradients.shape import padded, unsliced
from irkit.dialects.graph.pooling import PoolOp, Windows
from irkit.weights import Array

_ROW_MAJOR = BoolAttr.from_bool(False)
_FEW_TAPS = 9
"""So many elements of a window are compared one by one in one pass; of more, places are found first."""


@dataclass(frozen=True)
class Taps:
    """The taps of a pool of an input of `shape`."""

    where: Windows
    shape: tuple[int, ...]

    @staticmethod
    def of(o: Builder, op: PoolOp) -> Taps:
        """Those of an op."""
        return Taps(op.windows(), o.shape(op.x))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.where.kernel))

    @property
    def low(self) -> list[int]:
        """Padding before each dimension."""
        return [0, 0, *self.where.before]

    @property
    def high(self) -> list[int]:
        """And behind."""
        return [0, 0, *(max(r, 0) for r in self.where.reach)]

    @property
    def wide(self) -> list[int]:
        """The padded shape."""
        return [s + a + b for s, a, b in zip(self.shape, self.low, self.high, strict=True)]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """How many windows there are along each dimension, and how long they are."""
        return list(zip(self.where.outputs, self.where.kernel, strict=True))

    def offsets(self, tap: Sequence[int]) -> list[int]:
        """Where a tap's slice begins."""
        return [0, 0, *(t * d for t, d in zip(tap, self.where.dilations, strict=True))]

    def cut(self, o: Builder, x: SSAValue, tap: Sequence[int]) -> SSAValue:
        """The tap's element of each window, of a padded array."""
        return o(
            graph.SliceOp, x, offsets=self.offsets(tap), strides=[1, 1, *self.where.strides],
            sizes=[*self.shape[:2], *self.where.outputs],
        )  # fmt: skip

    def back(self, o: Builder, x: SSAValue, tap: Sequence[int]) -> SSAValue:
        """The transpose of `cut`."""
        return unsliced(o, x, self.offsets(tap), [1, 1, *self.where.strides], self.wide)

    def inside(self, o: Builder, x: SSAValue) -> SSAValue:
        """A padded array without its padding."""
        return o(
            graph.SliceOp, x, offsets=self.low, sizes=list(self.shape), strides=[1] * len(self.low)
        )

    def positions(self, tap: Sequence[int]) -> Array:
        """The row-major position in the input of the tap's element of each window."""
        at: Array = np.arange(math.prod(self.shape[:2])).reshape(self.shape[:2])
        for d, size in enumerate(self.shape[2:]):
            first = np.arange(self.where.outputs[d]) * self.where.strides[d] - self.where.before[d]
            along = first + tap[d] * self.where.dilations[d]
            # What lies outside is no position of the input.
            outside = (along < 0) | (along >= size)
            at = at[..., None] * size + np.where(outside, 0, along)
            at = np.where(outside | (np.asarray(at) < 0), -1, at)
        return at


def summed(o: Builder, parts: Iterator[SSAValue]) -> SSAValue:
    """The sum of one or more."""
    found: Maybe = None
    for part in parts:
        found = total(o, found, part)
    assert found is not None
    return found


class _MaxPool(Rule):
    """What is chosen is moved."""

    def _masks(
        self, o: Builder, op: PoolOp, taps: Taps
    ) -> Iterator[tuple[tuple[int, ...], SSAValue]]:
        where = o(graph.MaxPoolIndicesOp, op.x, **op.properties, column_major=_ROW_MAJOR)
        for tap in taps:
            yield tap, o.compare(where, o.constant(taps.positions(tap)), "eq")

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        assert isinstance(op, PoolOp)
        (t,) = tangents
        if t is None:
            return [None]
        taps = Taps.of(o, op)
        wide = padded(o, t, taps.low, taps.high)
        zero = o.like(0, t)
        masks = self._masks(o, op, taps)
        return [summed(o, (o.where(mask, taps.cut(o, wide, tap), zero) for tap, mask in masks))]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, PoolOp)
        (ct,) = cotangents
        if ct is None:
            return [None]
        taps, zero = Taps.of(o, op), o.like(0, ct)
        if _apart(taps):
            return [self._chosen(o, op, ct, taps)]
        masks = self._masks(o, op, taps)
        wide = summed(o, (taps.back(o, o.where(mask, ct, zero), tap) for tap, mask in masks))
        return [taps.inside(o, wide)]

    def _chosen(self, o: Builder, op: PoolOp, ct: SSAValue, taps: Taps) -> SSAValue:
        """Each element of the input is in one window: it asks whether it is that window's."""
        few = math.prod(taps.where.kernel) <= _FEW_TAPS
        number, here = (_first_tap if few else _first_place)(o, op, taps)
        mask = o.compare(_grown(o, number, taps), o.constant(here), "eq")
        chosen = o.where(mask, _grown(o, ct, taps), o.like(0, ct))
        return o.reshape(chosen, taps.shape)


def _first_tap(o: Builder, op: PoolOp, taps: Taps) -> tuple[SSAValue, Array]:
    """At which of its taps each window has its maximum, and at which each element is: plain comparisons of
    neighbours, where windows are small."""
    *others, last = enumerate(taps)
    found = o.like(last[0], op.y)
    for number, tap in reversed(others):
        value = taps.cut(o, op.x, tap)
        wins = o(graph.OrOp, o.compare(value, op.y, "eq"), o(graph.IsNanOp, value))
        found = o.where(wins, o.like(number, op.y), found)
    shape = [n for kernel in taps.where.kernel for n in (1, kernel)][1:]
    here = np.arange(math.prod(taps.where.kernel)).reshape(shape)
    return o.expand(found, o.shape(op.y)), here.astype(o.dtype(op.y))


def _first_place(o: Builder, op: PoolOp, taps: Taps) -> tuple[SSAValue, Array]:
    """The same by places in the input's planes."""
    where = o(graph.MaxPoolIndicesOp, op.x, **op.properties, column_major=_ROW_MAJOR)
    rest, plane = [1] * (len(taps.shape) - 2), math.prod(taps.shape[2:])
    first = np.arange(math.prod(taps.shape[:2])) * plane
    inside = o.sub(where, o.constant(first.reshape(*taps.shape[:2], *rest)))
    return inside, np.arange(plane).reshape([s for pair in taps.pairs for s in pair])


def _spread(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    """The transpose of a mean of each window."""
    assert isinstance(op, graph.AveragePoolOp)
    taps = Taps.of(o, op)
    counted = bool(op.count_include_pad.value.data)
    counts = taps.where.counts(taps.shape[2:], padding=counted)
    share = o.div(ct, o.constant(np.broadcast_to(counts, o.shape(ct)[2:]).astype(o.dtype(ct))))
    if _apart(taps):
        return _repeated(o, share, taps)
    return taps.inside(o, summed(o, (taps.back(o, share, tap) for tap in taps)))


def _apart(taps: Taps) -> bool:
    """Whether windows lie side by side, and are all of the input."""
    where = taps.where
    covered = [n * s for n, s in zip(where.outputs, where.strides, strict=True)]
    plain = {*where.dilations} == {1} and not any((*taps.low, *taps.high))
    return plain and where.kernel == where.strides and covered == list(taps.shape[2:])


def _repeated(o: Builder, x: SSAValue, taps: Taps) -> SSAValue:
    """Each element as often as its window is large."""
    wide = [*taps.shape[:2], *(s for pair in taps.pairs for s in pair)]
    return o.reshape(o.expand(_grown(o, x, taps), wide), taps.shape)


def _grown(o: Builder, x: SSAValue, taps: Taps) -> SSAValue:
    """An array of the windows, with a dimension of 1 for each of a window."""
    return o.reshape(x, [*taps.shape[:2], *(s for n, _ in taps.pairs for s in (n, 1))])


def _global(o: Builder, op: GraphOp, ct: SSAValue) -> SSAValue:
    shape = o.shape(op.operands[0])
    return o.expand(o.div(ct, o.like(math.prod(shape[2:]), ct)), shape)


def lp_pool(o: Builder, op: GraphOp) -> Sequence[SSAValue]:
    """(sum of |x|^p)^(1/p)"""
    assert isinstance(op, graph.LpPoolOp)
    taps, power = Taps.of(o, op), op.p.value.data
    magnitude = o(graph.AbsOp, op.x)
    if power == 2:
        magnitude = o.mul(op.x, op.x)
    elif power > 2:
        magnitude = o(graph.PowOp, magnitude, o.like(power, op.x))
    wide = padded(o, magnitude, taps.low, taps.high)
    found = summed(o, (taps.cut(o, wide, tap) for tap in taps))
    return [found if power == 1 else o(graph.PowOp, found, o.like(1 / power, op.x))]


RULES: Rules = {
    graph.AveragePoolOp: Linear({0: _spread}),
    graph.GlobalAveragePoolOp: Linear({0: _global}),
    graph.LpPoolOp: Composed(lp_pool),
    graph.MaxPoolOp: _MaxPool(),
}
