"""What the rTasks of a program touch, made comparable: views resolved, batch shares on one scale.

`Schedule.launches` is in program order; that order is the program's meaning, and a conflict is a pair
of rTasks that touch a common element of which at least one writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irkit.schedule.box_overlap import (
    Groups,
    Indices,
    Mask,
    filled,
    group_equal,
    meet,
    meeting_pairs,
)
from irkit.schedule.model import Access, Boxes, Buffer, Launch
from irkit.schedule.wellformed import check_launches, reject


@dataclass(frozen=True, eq=False)
class Touch:
    """One access of one launch.

    `boxes` is tasks×rank×2 with the leading dimension of a batched buffer in `Footprints.shares` of
    its root; `spans` is tasks×2, the bytes of the root between which each rTask stays (for a batched
    root, bytes of a batch of that many rows).
    """

    launch: int
    operand: int
    writes: bool
    buffer: int
    root: int
    boxes: Boxes
    spans: Boxes

    @cached_property
    def active(self) -> Mask:
        """Which rTasks touch anything: [tasks]."""
        return filled(self.boxes)

    @cached_property
    def groups(self) -> Groups:
        """The rTasks by equal boxes, so also by equal spans."""
        return group_equal(self.boxes)

    @cached_property
    def hull(self) -> tuple[Boxes, Boxes]:
        """The box (rank×2) and the span (2) around all active rTasks; empty when none is."""
        if not self.active.any():
            return np.zeros((self.boxes.shape[1], 2), np.int64), np.zeros(2, np.int64)
        boxes, spans = self.boxes[self.active], self.spans[self.active]
        box = np.stack([boxes[:, :, 0].min(axis=0), boxes[:, :, 1].max(axis=0)], axis=-1)
        return box, np.array([spans[:, 0].min(), spans[:, 1].max()])


@dataclass(frozen=True)
class Place:
    """Where a buffer is: `offset` bytes (or bytes per row) into the buffer `root`."""

    root: int
    offset: int


def batched(buffer: Buffer) -> bool:
    """Whether the leading dimension is the batch."""
    return bool(buffer.shape) and buffer.shape[0] < 0


def is_stored(buffer: Buffer) -> bool:
    """Whether it is what rows of a CSR matrix have stored: an input of 1×any length, of which any part may be
    read for any row."""
    return buffer.space == "input" and buffer.shape == (1, -1)


def resolve_views(buffers: Sequence[Buffer]) -> list[Place]:
    """Follow every view to the buffer whose bytes it shares. Raises ScheduleError (rule 'view')."""
    return [_resolve(buffers, index) for index in range(len(buffers))]


def _resolve(buffers: Sequence[Buffer], index: int) -> Place:
    view, offset, steps = buffers[index], 0, 0
    while (parent := buffers[index].parent) is not None:
        steps += 1
        if not 0 <= parent < len(buffers) or steps > len(buffers):
            reject("view", f"'{view.name}' has no root: parent {parent} is missing or circular")
        child, offset = buffers[index], offset + buffers[index].parent_offset
        inside = 0 <= child.parent_offset <= buffers[parent].nbytes - child.nbytes
        if not inside or batched(child) != batched(buffers[parent]):
            reject(
                "view", f"'{child.name}' does not lie inside its parent '{buffers[parent].name}'"
            )
        index = parent
    return Place(index, offset)


class Footprints:
    """All touches of a program, by root buffer, in program order.

    Raises ScheduleError (rules 'view', 'access') for a view outside its parent, an access of a missing
    buffer, or boxes outside the buffer's shape.

    A batched buffer is divided into as many shares as the highest bound of an access's boxes; two
    accesses with different counts are compared as fractions, which is exact up to one row and errs
    towards a conflict.
    """

    def __init__(self, buffers: Sequence[Buffer], launches: Sequence[Launch]) -> None:
        check_launches(launches)
        self.buffers, self.launches = buffers, launches
        self.places = resolve_views(buffers)
        uses = [
            (number, operand, writes, access)
            for number, launch in enumerate(launches)
            for writes, accesses in ((False, launch.reads), (True, launch.writes))
            for operand, access in enumerate(accesses)
        ]
        for number, operand, _, access in uses:
            self._check(launches[number], operand, access)
        self.shares: dict[int, int] = {}
        for *_, access in uses:
            if batched(buffers[access.buffer]):
                root = self.places[access.buffer].root
                count = math.lcm(self.shares.get(root, 1), share_count(access))
                self.shares[root] = count
        self.skewed = {p.root for i, p in enumerate(self.places) if self._is_skewed(i)}
        self.touches: dict[int, list[Touch]] = {}
        for number, operand, writes, access in uses:
            touch = self._touch(number, operand, writes, access)
            self.touches.setdefault(touch.root, []).append(touch)

    def _check(self, launch: Launch, operand: int, access: Access) -> None:
        where = f"access {operand} of '{launch.name}'"
        if not 0 <= access.buffer < len(self.buffers):
            reject("access", f"{where} names buffer {access.buffer}, which does not exist")
        buffer = self.buffers[access.buffer]
        wanted = (launch.tasks, len(buffer.shape), 2)
        if access.boxes.shape != wanted:
            reject("access", f"{where} has boxes of shape {access.boxes.shape}, expected {wanted}")
        if any(size < 0 for size in buffer.shape[1:]) and not is_stored(buffer):
            reject("access", f"'{buffer.name}' has a dynamic dimension that is not the first")
        top = np.array([s if s >= 0 else np.iinfo(np.int64).max for s in buffer.shape], np.int64)
        low, high = access.boxes[:, :, 0], access.boxes[:, :, 1]
        if bool((low < 0).any() or (high < low).any() or (high > top).any()):
            reject("access", f"{where} has a box outside '{buffer.name}' of shape {buffer.shape}")

    def _is_skewed(self, index: int) -> bool:
        """A batched view whose rows are not its parent's rows: only whole views are comparable."""
        root = self.places[index].root
        same = self.buffers[root].nbytes == self.buffers[index].nbytes
        return batched(self.buffers[index]) and not same

    def _touch(self, number: int, operand: int, writes: bool, access: Access) -> Touch:
        buffer, place = self.buffers[access.buffer], self.places[access.buffer]
        boxes = np.array(access.boxes, np.int64)
        if not batched(buffer):
            spans = place.offset + _byte_spans(boxes, buffer.shape, buffer.itemsize)
        else:
            scale = self.shares[place.root]
            boxes[:, 0] *= scale // share_count(access)
            spans = boxes[:, 0] * buffer.nbytes
            if place.root in self.skewed:
                whole = [place.offset * scale, (place.offset + buffer.nbytes) * scale]
                spans = np.broadcast_to(np.array(whole, np.int64), (len(boxes), 2))
        return Touch(number, operand, writes, access.buffer, place.root, boxes, spans)

    @cached_property
    def conflicts(self) -> list[tuple[Touch, Touch]]:
        """Pairs of touches that may conflict, the earlier launch first; one pair can be one launch."""
        pairs: list[tuple[Touch, Touch]] = []
        for touches in self.touches.values():
            pairs.extend(_near_pairs(touches))
        return pairs

    def constant_reads(self, launch: int) -> Iterator[tuple[int, Access]]:
        """The operands of `launch` that are constants, with their positions among its reads."""
        for operand, access in enumerate(self.launches[launch].reads):
            if self.buffers[self.places[access.buffer].root].space == "constant":
                yield operand, access


def share_count(access: Access) -> int:
    """Into how many shares of the batch this access's boxes count."""
    return max(1, int(access.boxes[:, 0, 1].max(initial=1)))


def _byte_spans(boxes: Boxes, shape: tuple[int, ...], itemsize: int) -> Boxes:
    """Half-open byte ranges [tasks, 2] around row-major boxes; empty boxes give empty ranges."""
    strides = np.array([math.prod(shape[d + 1 :]) for d in range(len(shape))], np.int64) * itemsize
    low = boxes[:, :, 0] @ strides
    high = (boxes[:, :, 1] - 1) @ strides + itemsize
    return np.stack([low, np.where(filled(boxes), high, low)], axis=-1)


def overlap(a: Touch, b: Touch) -> tuple[Indices, Indices]:
    """Groups i of a and j of b with common elements: box-exact in one buffer, else by byte spans."""
    if a.buffer == b.buffer:
        return meeting_pairs(a.boxes[a.groups.first], b.boxes[b.groups.first])
    return meeting_pairs(a.spans[a.groups.first, None, :], b.spans[b.groups.first, None, :])


def overlaps(a: Touch, b: Touch) -> bool:
    """Whether any rTasks of two touches have common elements."""
    return len(overlap(a, b)[0]) > 0


def _near_pairs(touches: list[Touch]) -> Iterator[tuple[Touch, Touch]]:
    """Pairs with a write whose hulls meet, each unordered pair once, a write paired with itself."""
    writes = np.array([touch.writes for touch in touches])
    if not writes.any():
        return
    spans = np.stack([touch.hull[1] for touch in touches])[:, None, :]
    near = meet(spans, spans) & (writes[:, None] | writes[None, :])
    buffers = np.array([touch.buffer for touch in touches])
    for buffer in np.unique(buffers):
        group = np.flatnonzero(buffers == buffer)
        hulls = np.stack([touches[i].hull[0] for i in group])
        near[np.ix_(group, group)] &= meet(hulls, hulls)
    for i, j in zip(*np.nonzero(np.triu(near)), strict=True):
        yield touches[i], touches[j]
