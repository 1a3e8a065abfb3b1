"""Which boxes meet, without looking at all pairs.

rTasks with equal boxes form one group, so that "everybody reads everything" is one pair; and among
many distinct boxes a sweep along one dimension finds the few that meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.model import Boxes

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

_DENSE = 1 << 16
"""Up to so many pairs, looking at all of them is quickest."""

_SMALL = 64
"""Up to so many rTasks, finding equal boxes costs more than it saves."""


@dataclass(frozen=True, eq=False)
class Groups:
    """rTasks by equal boxes: rTask t is in group `of[t]`; `first[g]` is one member of group g."""

    of: Indices
    first: Indices

    @cached_property
    def last(self) -> Indices:
        """The highest rTask of each group; `first` is the lowest."""
        highest = np.zeros(len(self.first), np.intp)
        np.maximum.at(highest, self.of, np.arange(len(self.of)))
        return highest

    def lanes(self, veus: int) -> tuple[Indices, Indices]:
        """The lowest and the highest lane (rTask modulo `veus`) of each group."""
        lane = np.arange(len(self.of)) % veus
        low, high = lane[self.first], lane[self.first]
        np.minimum.at(low, self.of, lane)
        np.maximum.at(high, self.of, lane)
        return low, high


def group_equal(boxes: Boxes) -> Groups:
    """Groups of rTasks with equal boxes; few rTasks are left apart unless all are equal."""
    tasks = len(boxes)
    if bool((boxes == boxes[:1]).all()):
        return Groups(np.zeros(tasks, np.intp), np.zeros(1, np.intp))
    if tasks <= _SMALL:
        return Groups(np.arange(tasks), np.arange(tasks))
    rows = np.ascontiguousarray(boxes.reshape(tasks, -1))
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, of = np.unique(keys, return_index=True, return_inverse=True)
    return Groups(of.reshape(-1), first)


def filled(boxes: Boxes) -> Mask:
    """Which of the boxes [n, rank, 2] have any element: [n]."""
    mask: Mask = np.logical_and.reduce(boxes[:, :, 0] < boxes[:, :, 1], axis=1)
    return mask


def meet(a: Boxes, b: Boxes) -> Mask:
    """Whether boxes a [m, rank, 2] and b [n, rank, 2] have a common element: [m, n]."""
    result: Mask = filled(a)[:, None] & filled(b)[None, :]
    for d in range(a.shape[1]):
        result &= a[:, None, d, 0] < b[None, :, d, 1]
        result &= b[None, :, d, 0] < a[:, None, d, 1]
    return result


def meeting_pairs(a: Boxes, b: Boxes) -> tuple[Indices, Indices]:
    """Indices i, j of all pairs a[i], b[j] that have a common element."""
    if len(a) * len(b) <= _DENSE or not a.shape[1]:
        first, second = np.nonzero(meet(a, b))
        return first, second
    axis = int(np.argmax([len(np.unique(b[:, d])) for d in range(b.shape[1])]))
    by_start = np.argsort(b[:, axis, 0], kind="stable")
    start, end = b[by_start, axis, 0], np.maximum.accumulate(b[by_start, axis, 1])
    # Candidates of a box are a run of b in order of start: those that start before it ends, from the
    # first whose predecessors may reach into it.
    low = np.searchsorted(end, a[:, axis, 0], side="right")
    high = np.maximum(np.searchsorted(start, a[:, axis, 1], side="left"), low)
    found = [_meeting_in(a, b, by_start, low, high, rows) for rows in _batches(high - low)]
    pairs = np.concatenate(found, axis=1)
    return pairs[0], pairs[1]


def _batches(counts: Indices) -> list[Indices]:
    """Consecutive boxes in batches of a few million candidates."""
    batch = counts.cumsum() // (1 << 22)
    return np.split(np.arange(len(counts)), np.flatnonzero(np.diff(batch)) + 1)


def _meeting_in(
    a: Boxes, b: Boxes, by_start: Indices, low: Indices, high: Indices, rows: Indices
) -> NDArray[np.intp]:
    """Meeting pairs [2, n] of a[rows] with their candidates by_start[low..high]."""
    counts = (high - low)[rows]
    first = np.repeat(rows, counts)
    step = np.arange(len(first)) - np.repeat(counts.cumsum() - counts, counts)
    second = by_start[low[first] + step]
    both: Mask = np.logical_and.reduce(
        np.maximum(a[first, :, 0], b[second, :, 0]) < np.minimum(a[first, :, 1], b[second, :, 1]),
        axis=1,
    )
    return np.stack([first[both], second[both]])
