"""Which bytes of a row-major array the boxes of all rTasks cover, as runs of neighbouring bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.footprint import batched, is_stored
from irkit.schedule.model import Boxes, Buffer

Runs = list[tuple[int, int]]
"""Half-open ranges of bytes, or of bytes per row of the batch, in order and apart."""

_MOST = 1 << 20
"""The most elements (or cells between bounds) that are looked at one by one."""


def runs_of(boxes: Boxes, buffer: Buffer) -> Runs | None:
    """The runs that `boxes` (tasks×rank×2) cover of `buffer`; None for all of it, or if they are too many
    to tell apart, when all of it is taken to be covered. The batch is taken as a whole."""
    if is_stored(buffer):
        return None
    shape = buffer.shape[1:] if batched(buffer) else buffer.shape
    filled = boxes[(boxes[:, :, 1] > boxes[:, :, 0]).all(axis=1)]
    if batched(buffer):
        filled = filled[:, 1:]
    whole = np.array([(0, size) for size in shape], np.int64).reshape(-1, 2)
    if (filled == whole).all(axis=(1, 2)).any():
        return None
    count = int(np.prod(shape, dtype=np.int64))
    if count > _MOST:
        return _hull(filled, shape, buffer.itemsize)
    covered = np.zeros(shape, bool)
    for box in np.unique(filled, axis=0).tolist():
        covered[tuple(slice(low, high) for low, high in box)] = True
    return _runs(covered.reshape(-1), buffer.itemsize)


def _hull(boxes: Boxes, shape: tuple[int, ...], itemsize: int) -> Runs | None:
    """One run around all boxes."""
    if not len(boxes):
        return []
    low, high = boxes[:, :, 0].min(axis=0), boxes[:, :, 1].max(axis=0) - 1
    first = int(np.ravel_multi_index(tuple(low), shape))
    last = int(np.ravel_multi_index(tuple(high), shape))
    return [(first * itemsize, (last + 1) * itemsize)]


def _runs(covered: NDArray[np.bool_], itemsize: int) -> Runs | None:
    if covered.all():
        return None
    edges = np.flatnonzero(np.diff(covered, prepend=False, append=False)) * itemsize
    starts, stops = edges[::2].tolist(), edges[1::2].tolist()
    return list(zip(starts, stops, strict=True))
