"""map: elementwise ops, copies, gathers, transpositions and pads, element by element."""

from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def map_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            STORE(OPERANDS, r, j)


def _work(part: Part) -> Work:
    return part.store * part.elements + work(row=part.rows)


RKERNELS = [RKernel("map", "rows", "cpu", __name__, "map_rows", work=_work)]
