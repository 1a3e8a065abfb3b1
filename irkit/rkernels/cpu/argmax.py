"""argmax: the first largest element of the last dimension."""

from irkit.rkernels.rkernel import RKernel


def argmax_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        best = int64(0)
        largest = LOAD(OPERANDS, r, 0)
        for k in range(1, K0):
            x = LOAD(OPERANDS, r, k)
            # NumPy's argmax: the first NaN counts as the largest.
            if x > largest or (x != x and largest == largest):
                largest = x
                best = int64(k)
        STORE(OPERANDS, r, best)


RKERNELS = [
    RKernel("argmax", "rows", "cpu", __name__, "argmax_rows", efficiency=0.007, overhead_ns=200.0),
]
