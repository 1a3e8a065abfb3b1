"""gemv: few rows b; y[b, u] = sum_k X[b, k] * W[u, k]."""

from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_float, tensor_type
from irkit.rkernels.families.row_terms import JOINING, multiply_adds
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def gemv_rows(task, tasks, rows, scratch, OPERANDS):
    """Row after row of X."""
    u0, u1 = UNITS(task, tasks)
    acc = STACK(1)
    for b in range(BATCH):
        for u in range(u0, u1):
            acc[0] = INIT(OPERANDS, b, u, 0) + dot_product(K0, X0, b * K0, W0, u * K0)
            STORE(OPERANDS, b, u, acc)


def gemv_units(task, tasks, rows, scratch, OPERANDS):
    """A row of W serves all rows of X while it is in the cache."""
    u0, u1 = UNITS(task, tasks)
    acc = STACK(1)
    for u in range(u0, u1):
        for b in range(BATCH):
            acc[0] = INIT(OPERANDS, b, u, 0) + dot_product(K0, X0, b * K0, W0, u * K0)
            STORE(OPERANDS, b, u, acc)


def few_rows(root: Root) -> bool:
    """One row-wise term over at most eight rows, and never over the batch (its shares are rows)."""
    if len(root.chain) != 1 or root.parallel[0] == DYNAMIC or len(root.parallel) != 2:
        return False
    if not is_float(tensor_type(root.chain[0].results[0]).element_type):
        return False
    return root.parallel[0] <= 8 and row_term(root.chain[0]) is not None


def _work(part: Part) -> Work:
    return work(dot=multiply_adds(part)) + (part.store + work(row=1, chain=JOINING)) * part.elements


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
