"""gemv: few rows b; y[b, u] = sum_k X[b, k] * W[u, k]."""

from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_float, tensor_type
from irkit.rkernels.families.row_terms import JOINING_EIGHT, multiply_adds
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def gemv_rows(task, tasks, rows, scratch, OPERANDS):
    """Row after row of X."""
    u0, u1 = UNITS(task, tasks)
    sums = STACK(64)
    acc = STACK(1)
    for b in range(BATCH):
        for first in range(u0, u1, 64):
            count = min(64, u1 - first)
            dot_rows(count, K0, X0, b * K0, W0, first * K0, sums, 0)
            for i in range(count):
                acc[0] = INIT(OPERANDS, b, first + i, 0) + sums[i]
                STORE(OPERANDS, b, first + i, acc)


def gemv_units(task, tasks, rows, scratch, OPERANDS):
    """Rows of W serve all rows of X while they are in the cache."""
    u0, u1 = UNITS(task, tasks)
    sums = STACK(8)
    acc = STACK(1)
    for first in range(u0, u1, 8):
        count = min(8, u1 - first)
        for b in range(BATCH):
            dot_rows(count, K0, X0, b * K0, W0, first * K0, sums, 0)
            for i in range(count):
                acc[0] = INIT(OPERANDS, b, first + i, 0) + sums[i]
                STORE(OPERANDS, b, first + i, acc)


def few_rows(root: Root) -> bool:
    """One row-wise term over at most eight rows, and never over the batch (its shares are rows)."""
    if len(root.chain) != 1 or root.parallel[0] == DYNAMIC or len(root.parallel) != 2:
        return False
    if not is_float(tensor_type(root.chain[0].results[0]).element_type):
        return False
    return root.parallel[0] <= 8 and row_term(root.chain[0]) is not None


def _work(part: Part) -> Work:
    return work(dot=multiply_adds(part)) + (part.store + work(op=1 + JOINING_EIGHT)) * part.elements


RKERNELS = [
    RKernel(
        "gemv",
        "rows",
        "cpu",
        __name__,
        "gemv_rows",
        legal=few_rows,
        work=_work,
        reassociates=True,
        halves=True,
        contracts=True,
    ),
    RKernel(
        "gemv",
        "units",
        "cpu",
        __name__,
        "gemv_units",
        legal=lambda root: few_rows(root) and root.parallel[0] > 1,
        # A row of W comes from memory once.
        work=lambda part: _work(part) * 0.9,
        reassociates=True,
        halves=True,
        contracts=True,
    ),
]
