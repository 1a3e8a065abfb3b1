"""softmax: one row at a time, in three sweeps."""

from irkit.rkernels.rkernel import RKernel


def softmax_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        largest = LOAD(OPERANDS, r, 0)
        for j in range(1, J):
            x = LOAD(OPERANDS, r, j)
            largest = largest if (largest > x or largest != largest) else x
        total = FLOAT(0)
        for j in range(J):
            total += math.exp(LOAD(OPERANDS, r, j) - largest)
        for j in range(J):
            STORE(OPERANDS, r, j, math.exp(LOAD(OPERANDS, r, j) - largest) / total)


RKERNELS = [
    RKernel(
        "softmax", "rows", "cpu", __name__, "softmax_rows", efficiency=0.003, overhead_ns=200.0
    ),
]
