"""Buffers that a loop hands on from round to round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from irkit.frontends.numpy.affine import Affine
from irkit.frontends.numpy.recorder import Recorder
from irkit.frontends.numpy.records import Buffer, ComplexView, Record, View, complex_of
from irkit.frontends.numpy.unify import Unequal


@dataclass(frozen=True)
class Carried:
    """`buffers` and what each of them is in the next round. Where outer arrays change places they are where
    they were after `period` rounds.

    A round begins by moving the contents: each buffer takes those of the one that is in its place in the next
    round. Before the first, contents are moved back, so that this undoes it.
    """

    buffers: tuple[tuple[Buffer, Buffer], ...]
    period: int

    def begin(self, r: Recorder) -> None:
        """Before the loop: contents go where the first round takes them from."""
        self._move(r, [(later, own) for own, later in self.buffers])

    def moves(self, r: Recorder) -> list[Record]:
        """What a round begins with."""
        outer, r.records = r.records, []
        self._move(r, [(own, later) for own, later in self.buffers])
        made, r.records = r.records, outer
        return made

    def _move(self, r: Recorder, pairs: Sequence[tuple[Buffer, Buffer]]) -> None:
        """Contents of the second of each pair to the first, all at once."""
        values = [r.read(whole(source)) for _, source in pairs]
        for (target, _), value in zip(pairs, values, strict=True):
            r.write(value, whole(target))


def whole(buffer: Buffer) -> View:
    """All of a buffer."""
    strides = tuple(s // buffer.base.itemsize for s in buffer.base.strides)
    if buffer.pairs:
        return ComplexView(buffer, Affine(0), buffer.shape[:-1], strides[:-1])
    return View(buffer, Affine(0), buffer.shape, strides)


def begun(r: Recorder, buffer: Buffer) -> None:
    """Have a buffer be 0 if nothing was written to it so far: what is written by a condition reads what was
    there."""
    if buffer.written:
        return
    view = whole(buffer)
    dtype = complex_of(buffer.dtype) if buffer.pairs else buffer.dtype
    r.write(r.splat(0, dtype, view.sizes), view)


@dataclass(frozen=True)
class Made:
    """What was made when: in the round that is compared, in the next, and since the loop began."""

    first: frozenset[Buffer]
    second: frozenset[Buffer]
    since: frozenset[Buffer]


def carried(later: Mapping[Buffer, Buffer], made: Made) -> Carried:
    """What two rounds that are alike hand on; `later` is what of the next is in the place of what of the
    first. Raises Unequal where it cannot be said of all rounds."""
    moving = {p: q for p, q in later.items() if p is not q}
    pairs: list[tuple[Buffer, Buffer]] = []
    period = 1
    for p, q in moving.items():
        if (p in made.first) != (q in made.second):
            raise Unequal("an array that is made anew in one round, and not in the next")
        if q in made.second:
            continue
        if q not in moving:
            raise Unequal("an array from before the loop that is used in one round only")
        length = _cycle(q, moving)
        if length == 0 and q not in made.since:
            raise Unequal("an array from before the loop that is handed on")
        pairs.append((q, moving[q]))
        period = lcm(period, length or 1)
    return Carried(tuple(pairs), period)


def _cycle(buffer: Buffer, moving: Mapping[Buffer, Buffer]) -> int:
    """After how many rounds a buffer is itself again; 0 if never."""
    at, length = moving.get(buffer), 1
    while at is not None and at is not buffer:
        at, length = moving.get(at), length + 1
    return length if at is buffer else 0
