"""Rule 'unwritten': nothing is read that no earlier launch has written, and results are whole.

Once races are excluded, an earlier launch's write of an element happens before the read of it, so
program order is all that has to be looked at.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Mask
from irkit.schedule.footprint import Footprints, Touch, batched, share_count
from irkit.schedule.model import Boxes, Schedule
from irkit.schedule.wellformed import describe, reject

MAX_CELLS = 1 << 28
"""The largest mask tried, in cells."""


def check_covered(schedule: Schedule, feet: Footprints) -> None:
    """Every box read from arena, rows or output memory lies in what earlier launches wrote.

    The rTasks of a launch write all of each of its results, and an output that is written at all is
    written everywhere.
    """
    _check_whole(schedule)
    for root, touches in feet.touches.items():
        if schedule.buffers[root].space in ("input", "constant", "state"):
            continue
        if {touch.buffer for touch in touches} == {root}:
            written = _follow_boxes(schedule, feet, root, touches)
        else:
            written = _follow_views(schedule, feet, root, touches)
        output = schedule.buffers[root].space == "output"
        if output and any(touch.writes for touch in touches) and not written.all():
            reject("unwritten", f"output '{schedule.buffers[root].name}' is written only in part")


def _check_whole(schedule: Schedule) -> None:
    known: set[tuple[int, tuple[int, ...]]] = set()
    for number, append in enumerate(schedule.appends):
        for access in schedule.launches[append.launch].writes:
            buffer = schedule.buffers[access.buffer]
            shape = buffer.shape
            if batched(buffer):
                shape = (share_count(access), *shape[1:])
            # Launches of one rOperator share their boxes.
            if (id(access.boxes), shape) not in known and not _is_whole(access.boxes, shape):
                reject(
                    "unwritten",
                    f"{describe(schedule, number)} writes only a part of '{buffer.name}'",
                )
            known.add((id(access.boxes), shape))


def _is_whole(boxes: Boxes, shape: tuple[int, ...]) -> bool:
    """Whether boxes cover an array of this shape."""
    bounds = [
        np.unique(np.concatenate([[0, size], boxes[:, d].ravel()])) for d, size in enumerate(shape)
    ]
    written = np.zeros([len(bound) - 1 for bound in bounds], bool)
    _fill(written, _in_cells(boxes, bounds))
    return bool(written.all())


def _follow_boxes(schedule: Schedule, feet: Footprints, root: int, touches: list[Touch]) -> Mask:
    """All boxes have the same coordinates, so a cell of the mask is what lies between two bounds."""
    shape = _shape(schedule, feet, root, root)
    bounds = [
        np.unique(np.concatenate([[0, size], *(t.boxes[:, d].ravel() for t in touches)]))
        for d, size in enumerate(shape)
    ]
    written = np.zeros([len(bound) - 1 for bound in bounds], bool)
    for touch in touches:  # in program order, and in a launch the reads first
        cells = _in_cells(touch.boxes, bounds)
        if touch.writes:
            _fill(written, cells)
        else:
            _require(schedule, touch, written, cells)
    return written


def _shape(schedule: Schedule, feet: Footprints, root: int, index: int) -> tuple[int, ...]:
    """The shape of a buffer, with the batch in shares of its root."""
    buffer = schedule.buffers[index]
    return (feet.shares.get(root, 1), *buffer.shape[1:]) if batched(buffer) else buffer.shape


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


def _follow_views(schedule: Schedule, feet: Footprints, root: int, touches: list[Touch]) -> Mask:
    """A mask of the root's bytes (or units of several), seen through each view by its shape."""
    buffers = [schedule.buffers[touch.buffer] for touch in touches]
    offsets = [feet.places[touch.buffer].offset for touch in touches]
    rows, nbytes = feet.shares.get(root, 1), schedule.buffers[root].nbytes
    unit = math.gcd(nbytes, *(buffer.itemsize for buffer in buffers), *offsets)
    if rows * nbytes // unit > MAX_CELLS:
        reject("unwritten", f"'{schedule.buffers[root].name}' is too large to follow through views")
    written = np.zeros(rows * nbytes // unit, bool)
    for touch, buffer, offset in zip(touches, buffers, offsets, strict=True):
        start, size = rows * offset // unit, rows * buffer.nbytes // unit
        shape = _shape(schedule, feet, root, touch.buffer)
        view = written[start : start + size].reshape(*shape, buffer.itemsize // unit)
        if root in feet.skewed:
            _follow_whole(schedule, touch, view)
        elif touch.writes:
            _fill(view, touch.boxes)
        else:
            _require(schedule, touch, view, touch.boxes)
    return written


def _follow_whole(schedule: Schedule, touch: Touch, view: Mask) -> None:
    """Views whose rows are not the root's rows: shares do not correspond, only whole views do."""
    if not touch.writes and not view.all():
        _report(schedule, touch, int(np.argmax(touch.active)))
    if touch.writes:
        local = np.zeros_like(view)
        _fill(local, touch.boxes)
        view |= local.all()
