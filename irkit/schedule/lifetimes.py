"""When buffers are in use, as vector clocks: the base of memory reuse and of its proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Mask
from irkit.schedule.footprint import Footprints
from irkit.schedule.happens_before import Clocks, HappensBefore
from irkit.schedule.model import Schedule

NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Lifetimes:
    """Per buffer (views count for their root), [buffers, veus]:

    `known`: how much of each vEU has certainly finished when any rTask first touches the buffer;
    `last`: how far each vEU is when it has touched the buffer for the last time;
    `written`: how far each vEU is when it has first written to it (NEVER if it does not);
    `read`: what has certainly finished, itself included, when some rTask has touched it; so an rTask
    x happens before or is a user of the buffer exactly when `read` has x.
    """

    known: Clocks
    last: Clocks
    written: Clocks
    read: Clocks

    def wholly_before(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> Mask:
        """Whether every rTask on buffer a[i] finishes before any on b[i] starts: [pairs]."""
        mask: Mask = np.logical_and.reduce(self.known[b] >= self.last[a], axis=1)
        return mask

    def precedence(self, buffers: NDArray[np.intp]) -> Mask:
        """Matrix over `buffers`: whether the first is done with before the second begins.

        A buffer that nothing touches is before every one, itself included.
        """
        known, last = self.known[buffers], self.last[buffers]
        before = np.zeros((len(buffers), len(buffers)), bool)
        for row in range(len(buffers)):
            used = np.flatnonzero(last[row])
            before[row] = (known[:, used] >= last[row, used]).all(axis=1)
        return before


def lifetimes(schedule: Schedule, feet: Footprints, order: HappensBefore) -> Lifetimes:
    """The lifetimes of all buffers; one that no rTask touches interferes with none."""
    append_of = {append.launch: number for number, append in enumerate(schedule.appends)}
    shape = (len(schedule.buffers), order.veus)
    known, last = np.full(shape, NEVER, np.int32), np.zeros(shape, np.int32)
    written, read = np.full(shape, NEVER, np.int32), np.zeros(shape, np.int32)
    for root, touches in feet.touches.items():
        if schedule.buffers[root].space in ("constant", "input", "state"):
            continue
        for touch in touches:
            if touch.launch not in append_of:
                continue
            append, active = append_of[touch.launch], touch.active
            end = order.last_end(append, active)
            np.minimum(known[root], order.first_start(append, active), out=known[root])
            np.maximum(last[root], end, out=last[root])
            np.maximum(read[root], last_knowledge(order, append, active), out=read[root])
            if touch.writes:
                first = first_end(order, append, active)
                np.minimum(written[root], first, out=written[root])
    return Lifetimes(known, last, written, read)


def first_end(order: HappensBefore, append: int, active: Mask) -> Clocks:
    """Per vEU, the count it reaches with its first active rTask of `append`, else NEVER: [veus]."""
    entry = order.schedule.appends[append]
    task = np.flatnonzero(active)
    done = np.full(order.veus, NEVER, np.int32)
    counts = (order.positions(append)[task] + 1).astype(np.int32)
    np.minimum.at(done, entry.first_veu + task % entry.veus, counts)
    return done


def last_knowledge(order: HappensBefore, append: int, active: Mask) -> Clocks:
    """The join of the end clocks of the active rTasks of `append`: [veus]."""
    if active.all():
        return order.ends(append)
    starts = order.starts(append)[active]
    return np.maximum(starts.max(axis=0, initial=0), order.last_end(append, active))
