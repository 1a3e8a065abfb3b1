"""reduce and pool: one output at a time, in index order."""

from irkit.rkernels.rkernel import RKernel


def reduce_serial(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            acc = INIT(OPERANDS, r, j)
            for k0 in range(K0):
                for k1 in range(K1):
                    for k2 in range(K2):
                        acc = COMBINE(acc, TERM(OPERANDS, r, j, k0, k1, k2))
            STORE(OPERANDS, r, j, acc)


RKERNELS = [
    RKernel(family, "serial", "cpu", __name__, "reduce_serial", efficiency=rate, overhead_ns=200.0)
    for family, rate in (("reduce", 0.02), ("pool", 0.15))
]
