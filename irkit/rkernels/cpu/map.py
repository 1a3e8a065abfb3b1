"""map: elementwise ops, copies, gathers, transpositions and pads, element by element."""

from irkit.rkernels.rkernel import RKernel


def map_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            STORE(OPERANDS, r, j)


RKERNELS = [
    RKernel("map", "rows", "cpu", __name__, "map_rows", efficiency=0.014, overhead_ns=200.0),
]
