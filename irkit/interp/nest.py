"""The meaning of a scheduled nest: its statement, point by point in the order of its loops.

All points of a nest are made at once, as arrays; sums then take their terms in the order of the points.
A copy of an operand has one element for all points of a place in it: those of its first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.linalg import ops as linalg

from irkit.dialects.linalg_generic import maps
from irkit.dialects.tensor_ops.interface import Interpreter
from irkit.dialects.tensor_ops.loop_nest import affine_index
from irkit.dialects.tensor_ops.scalar_body import yielded
from irkit.errors import InvalidModelError
from irkit.expressions.loops import Fused, Nest, Split
from irkit.weights import Array


@dataclass
class Points:
    """The turns of a nest over one part of the result: for each loop its number, by turns in order."""

    nest: Nest
    part: dict[str, int]
    count: int = 1
    values: dict[str, Array] = field(default_factory=dict[str, Array])

    def __post_init__(self) -> None:
        for axis in self.nest.order:
            turns = np.broadcast_to(self.turns(axis.name), (self.count,))
            again = np.repeat(np.arange(self.count), turns)
            first = np.repeat(np.cumsum(turns) - turns, turns)
            self.values = {name: v[again] for name, v in self.values.items()}
            self.count = len(again)
            self.values[axis.name] = np.arange(self.count) - first

    def _bounds(self, name: str) -> tuple[int, int]:
        """This part of an index."""
        size = next(a.extent for a in self.nest.indices if a.name == name)
        parts, number = self.nest.parts.get(name, 1), self.part.get(name, 0)
        return size * number // parts, size * (number + 1) // parts

    def turns(self, name: str) -> Array:
        """How many turns a loop has, where those outside of it are at hand."""
        for origin in self.nest.origins:
            if isinstance(origin, Fused):
                if name == origin.made:
                    return self.turns(origin.outer.name) * self.turns(origin.inner.name)
            elif name == origin.outer:
                return -(-self.turns(origin.of.name) // origin.by)
            elif name == origin.inner:
                return self._turns_within(origin)
        low, high = self._bounds(name)
        return np.array(high - low)

    def _turns_within(self, split: Split) -> Array:
        if split.exact or not split.of.reduced:
            return np.array(split.by)
        left = self.turns(split.of.name) - self.number(split.outer) * split.by
        return np.minimum(split.by, left)

    def number(self, name: str) -> Array:
        """The number of a loop, or of an index within its part."""
        if name in self.values:
            return self.values[name]
        for origin in self.nest.origins:
            if isinstance(origin, Split) and origin.of.name == name:
                begin = self.number(origin.outer) * origin.by
                if not origin.exact and not origin.of.reduced:
                    begin = np.minimum(begin, self.turns(name) - origin.by)
                return begin + self.number(origin.inner)
            if isinstance(origin, Fused) and name == origin.outer.name:
                return self.number(origin.made) // origin.inner.extent
            if isinstance(origin, Fused) and name == origin.inner.name:
                return self.number(origin.made) % origin.inner.extent
        raise InvalidModelError(f"a nest without '{name}'")

    def indices(self) -> list[Array]:
        """The statement's indices."""
        return [self._bounds(a.name)[0] + self.number(a.name) for a in self.nest.indices]

    def same(self, names: Sequence[str]) -> Array:
        """A number for each turn, the same where these loops are at the same turns."""
        found = np.zeros(self.count, np.int64)
        for name in names:
            value = self.values[name]
            found = found * (int(value.max(initial=0)) + 1) + value
        return found


def run_nest(
    op: linalg.GenericOp, nest: Nest, operands: Sequence[Array], interpreter: Interpreter
) -> list[Array]:
    """The result of a reduction whose loops are those of `nest`.

    Raises InvalidModelError for a nest that leaves elements out.
    """
    result = np.array(operands[-1])
    written = np.zeros(result.shape, bool)
    for numbers in itertools.product(*(range(n) for n in nest.grid)):
        names = [a.name for a in nest.indices]
        points = Points(nest, dict(zip(names, numbers, strict=False)))
        where, values = _sums(op, points, operands, interpreter)
        result[where], written[where] = values, True
    if not written.all():
        raise InvalidModelError("a nest of loops that leaves elements of its result out")
    return [result]


def _sums(
    op: linalg.GenericOp, points: Points, operands: Sequence[Array], interpreter: Interpreter
) -> tuple[tuple[Array, ...], Array]:
    """Where one part writes what, tile by tile."""
    nest, indices = points.nest, points.indices()
    amaps = maps(op)
    # Every turn of the loops that are not reduced has a sum of its own.
    own = points.same([a.name for a in nest.order if not a.reduced])
    place = affine_index(amaps[-1], indices)
    _, first, group = np.unique(own, return_index=True, return_inverse=True)
    where = tuple(p[first] for p in place)
    sums = np.array(operands[-1][where])
    # The terms of a sum are taken one after another, those of all sums at once.
    order = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[order], np.arange(len(first)))
    rank = np.empty(points.count, np.int64)
    rank[order] = np.arange(points.count) - begins[group[order]]
    reads = [
        a[affine_index(m, _copied(points, nest, number, m.used_dims(), indices))]
        for number, (a, m) in enumerate(zip(operands[:-1], amaps, strict=False))
    ]
    for turn in range(int(rank.max(initial=-1)) + 1):
        taken = np.flatnonzero(rank == turn)
        arguments = [*(r[taken] for r in reads), sums[group[taken]]]
        loops = [i[taken] for i in indices]
        (made,) = yielded(op, op.body.block, arguments, loops, interpreter)
        sums[group[taken]] = made
    return where, sums


def _copied(
    points: Points, nest: Nest, number: int, dims: set[int], indices: list[Array]
) -> list[Array]:
    """The indices of what is read: of a copy those of the first point at the same place of it."""
    name = nest.operands[number] if number < len(nest.operands) else ""
    if name not in nest.caches:
        return indices
    loop, _ = nest.caches[name]
    at = nest.position(loop) if loop else -1
    moved = {nest.indices[d].name for d in dims}
    within = [a.name for a in nest.order[at + 1 :] if moved & nest.sources(a.name)]
    key = points.same([*(a.name for a in nest.order[: at + 1]), *within])
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return [i[first][place] for i in indices]
