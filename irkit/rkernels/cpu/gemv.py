"""gemv: few rows b; y[b, u] = sum_k X[b, k] * W[u, k]."""

from irkit.dialects.roots import Root, row_term
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.registry import RKernel


def gemv_rows(task, tasks, rows, scratch, OPERANDS):
    """One dot product at a time."""
    u0, u1 = UNITS(task, tasks)
    acc = STACK(1)
    for b in range(BATCH):
        for u in range(u0, u1):
            total = FLOAT(0)
            for k in range(K0):
                total += X0[b * K0 + k] * W0[u * K0 + k]
            acc[0] = INIT(OPERANDS, b, u, 0) + total
            STORE(OPERANDS, b, u, acc)


def gemv_four(task, tasks, rows, scratch, OPERANDS):
    """Four dot products at a time: each load of X serves four rows of W."""
    u0, u1 = UNITS(task, tasks)
    acc = STACK(1)
    for b in range(BATCH):
        u = u0
        while u + 4 <= u1:
            t0 = FLOAT(0)
            t1 = FLOAT(0)
            t2 = FLOAT(0)
            t3 = FLOAT(0)
            for k in range(K0):
                x = X0[b * K0 + k]
                t0 += x * W0[u * K0 + k]
                t1 += x * W0[(u + 1) * K0 + k]
                t2 += x * W0[(u + 2) * K0 + k]
                t3 += x * W0[(u + 3) * K0 + k]
            acc[0] = INIT(OPERANDS, b, u, 0) + t0
            STORE(OPERANDS, b, u, acc)
            acc[0] = INIT(OPERANDS, b, u + 1, 0) + t1
            STORE(OPERANDS, b, u + 1, acc)
            acc[0] = INIT(OPERANDS, b, u + 2, 0) + t2
            STORE(OPERANDS, b, u + 2, acc)
            acc[0] = INIT(OPERANDS, b, u + 3, 0) + t3
            STORE(OPERANDS, b, u + 3, acc)
            u += 4
        while u < u1:
            total = FLOAT(0)
            for k in range(K0):
                total += X0[b * K0 + k] * W0[u * K0 + k]
            acc[0] = INIT(OPERANDS, b, u, 0) + total
            STORE(OPERANDS, b, u, acc)
            u += 1


def few_rows(root: Root) -> bool:
    """One row-wise term over at most eight rows, and never over the batch (its shares are rows)."""
    if len(root.chain) != 1 or root.parallel[0] == DYNAMIC or len(root.parallel) != 2:
        return False
    return root.parallel[0] <= 8 and row_term(root.chain[0]) is not None


RKERNELS = [
    RKernel(
        "gemv",
        "rows",
        "cpu",
        __name__,
        "gemv_rows",
        legal=few_rows,
        efficiency=0.036,
        overhead_ns=200.0,
    ),
    RKernel(
        "gemv",
        "four",
        "cpu",
        __name__,
        "gemv_four",
        legal=few_rows,
        efficiency=0.057,
        overhead_ns=250.0,
    ),
]
