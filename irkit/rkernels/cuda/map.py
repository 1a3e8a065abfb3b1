"""Elementwise work, copies, gathers, transpositions: every element of an rTask's part, one by one."""

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
]
