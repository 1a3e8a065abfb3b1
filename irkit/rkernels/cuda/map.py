"""Elementwise work, copies, gathers, transpositions: every element of an rTask's part, one by one."""

import math
from typing import Final

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def map_elements(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element, step = THREAD, THREADS
    while element < count:
        r, j = divide(element, width)
        STORE(OPERANDS, r0 + r, j0 + j)
        element += step


def map_fetched(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element, step = THREAD, THREADS

    def fetched(n):
        r, j = divide(element + n * step, width)
        return FETCH(OPERANDS, r0 + r, j0 + j)

    def stored(n, known):
        r, j = divide(element + n * step, width)
        STORE_FETCHED(OPERANDS, r0 + r, j0 + j, known)

    # What four elements read is on its way together.
    while element + 3 * step < count:
        one, two, three, four = fetched(0), fetched(1), fetched(2), fetched(3)
        stored(0, one)
        stored(1, two)
        stored(2, three)
        stored(3, four)
        element += 4 * step
    while element < count:
        stored(0, fetched(0))
        element += step


AT_ONCE: Final = 4
"""Elements whose operands a thread reads before it stores the first."""
MANY: Final = 1 << 17
"""Elements from which on each thread of a GPU has several."""


def _many(root: Root) -> bool:
    """Of a batch there may be any number of rows."""
    return DYNAMIC in root.parallel or math.prod(root.parallel) >= MANY


def _fetched_work(part: Part) -> Work:
    each = part.store
    gathers = each.units.get("gather", 0)
    turns, left = divmod(part.rounds(part.elements, part.threads), AT_ONCE)
    # Three of four are not waited for, but what they read comes behind it.
    waits = turns * (1.5 + gathers * AT_ONCE) + left * (1 + gathers)
    return each * part.elements + work(round=waits)


def _work(part: Part) -> Work:
    each = part.store
    waits = 1 + each.units.get("gather", 0)
    return each * part.elements + work(round=waits * part.rounds(part.elements, part.threads))


RKERNELS = [
    RKernel(
        "map",
        "elements",
        "cuda",
        __name__,
        "map_elements",
        work=_work,
        spreads=True,
    ),
    RKernel(
        "map",
        "fetched",
        "cuda",
        __name__,
        "map_fetched",
        legal=_many,
        work=_fetched_work,
        spreads=True,
    ),
]
