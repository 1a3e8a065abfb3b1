"""Rule 'unwritten': nothing is read that no earlier launch has written.

Once races are excluded, an earlier launch's write of an element happens before the read of it, so
program order is all that has to be looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.footprint import Footprints, Mask, Touch, batched
from irkit.schedule.model import Boxes, Schedule
from irkit.schedule.wellformed import reject

MAX_CELLS = 1 << 28
"""The largest mask tried, in cells."""


def check_covered(schedule: Schedule, feet: Footprints) -> None:
    """Every box read from arena, rows or output memory lies in what earlier launches wrote."""
    for root, touches in feet.touches.items():
        if schedule.buffers[root].space in ("input", "constant"):
            continue
        if len({touch.buffer for touch in touches}) == 1:
            _check_one_buffer(schedule, touches)
        else:
            _check_views(schedule, feet, root, touches)


def _check_one_buffer(schedule: Schedule, touches: list[Touch]) -> None:
    """All boxes have the same coordinates, so a cell of the mask is what lies between two bounds."""
    rank = touches[0].boxes.shape[1]
    bounds = [
        np.unique(np.concatenate([t.boxes[:, d].ravel() for t in touches])) for d in range(rank)
    ]
    written = np.zeros([max(0, len(bound) - 1) for bound in bounds], bool)
    for touch in touches:  # in program order, and in a launch the reads first
        cells = _in_cells(touch.boxes, bounds)
        if touch.writes:
            _fill(written, cells)
        else:
            _require(schedule, touch, written, cells)


def _in_cells(boxes: Boxes, bounds: list[NDArray[np.int64]]) -> Boxes:
    cells = np.empty_like(boxes)
    for d, bound in enumerate(bounds):
        cells[:, d] = np.searchsorted(bound, boxes[:, d])
    return cells


def _fill(written: Mask, boxes: Boxes) -> None:
    for box in boxes.tolist():
        written[tuple(slice(low, high) for low, high in box)] = True


def _require(schedule: Schedule, touch: Touch, written: Mask, boxes: Boxes) -> None:
    if written.all():
        return
    for task, box in enumerate(boxes.tolist()):
        if not written[tuple(slice(low, high) for low, high in box)].all():
            _report(schedule, touch, task)


def _report(schedule: Schedule, touch: Touch, task: int) -> None:
    number = next(n for n, a in enumerate(schedule.appends) if a.launch == touch.launch)
    name = schedule.launches[touch.launch].name
    reject(
        "unwritten",
        f"append {number} ('{name}') rTask {task} on vEU {schedule.appends[number].veu_of(task)} "
        f"reads elements of '{schedule.buffers[touch.buffer].name}' that no earlier launch writes",
    )


def _check_views(schedule: Schedule, feet: Footprints, root: int, touches: list[Touch]) -> None:
    """A mask of the root's bytes, seen through each view by the view's shape."""
    rows = feet.shares.get(root, 1)
    if rows * schedule.buffers[root].nbytes > MAX_CELLS:
        reject("unwritten", f"'{schedule.buffers[root].name}' is too large to follow through views")
    written = np.zeros(rows * schedule.buffers[root].nbytes, bool)
    for touch in touches:
        view = _through_view(schedule, feet, written, touch, rows)
        if root in feet.skewed:
            _follow_whole(schedule, touch, view)
        elif touch.writes:
            _fill(view, touch.boxes)
        else:
            _require(schedule, touch, view, touch.boxes)


def _through_view(
    schedule: Schedule, feet: Footprints, written: Mask, touch: Touch, rows: int
) -> Mask:
    buffer = schedule.buffers[touch.buffer]
    start = feet.places[touch.buffer].offset * rows
    shape = (rows, *buffer.shape[1:]) if batched(buffer) else buffer.shape
    return written[start : start + rows * buffer.nbytes].reshape(*shape, buffer.itemsize)


def _follow_whole(schedule: Schedule, touch: Touch, view: Mask) -> None:
    """Views whose rows are not the root's rows: shares do not correspond, only whole views do."""
    if not touch.writes and not view.all():
        _report(schedule, touch, int(np.argmax(touch.active)))
    if touch.writes:
        local = np.zeros_like(view)
        _fill(local, touch.boxes)
        view |= local.all()
