"""gemv: few rows b; y[b, u] = sum_k X[b, k] * W[u, k]."""

from collections.abc import Callable

from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_float, tensor_type
from irkit.rkernels.families.row_terms import FEW_AT_ONCE, JOINING_EIGHT, dots
from irkit.rkernels.rkernel import Parameters, RKernel
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
    """Rows of W serve all rows of X, FEW at a time, while they are in the cache; LEFT are left at last."""
    u0, u1 = UNITS(task, tasks)
    sums = STACK(8 * FEW)
    acc = STACK(1)
    for first in range(u0, u1, 8):
        count = min(8, u1 - first)
        for b in range(0, BATCH - LEFT, FEW):
            dot_rows_of_each(FEW, count, K0, X0, b * K0, W0, first * K0, sums, 0, 8)
            for y in range(FEW):
                for i in range(count):
                    acc[0] = INIT(OPERANDS, b + y, first + i, 0) + sums[y * 8 + i]
                    STORE(OPERANDS, b + y, first + i, acc)
        if LEFT:
            b = BATCH - LEFT
            dot_rows_of_each(LEFT, count, K0, X0, b * K0, W0, first * K0, sums, 0, 8)
            for y in range(LEFT):
                for i in range(count):
                    acc[0] = INIT(OPERANDS, b + y, first + i, 0) + sums[y * 8 + i]
                    STORE(OPERANDS, b + y, first + i, acc)


MOST_ROWS = 16
"""Of more rows, tiles of products have a vector of them."""


def few_rows(root: Root) -> bool:
    """One row-wise term over at most MOST_ROWS rows, and never over the batch (its shares are rows)."""
    if len(root.chain) != 1 or root.parallel[0] == DYNAMIC or len(root.parallel) != 2:
        return False
    if not is_float(tensor_type(root.chain[0].results[0]).element_type):
        return False
    return root.parallel[0] <= MOST_ROWS and row_term(root.chain[0]) is not None


def _work(kind: str) -> Callable[[Part], Work]:
    def counted(part: Part) -> Work:
        stored = (part.store + work(op=1 + JOINING_EIGHT)) * part.elements
        return dots(part, kind) + stored

    return counted


def _parameters(few: int) -> Callable[[Root], Parameters]:
    """All rows at once where there are no more."""

    def parameters(root: Root) -> Parameters:
        most = min(few, root.parallel[0])
        return {"FEW": most, "LEFT": root.parallel[0] % most}

    return parameters


RKERNELS = [
    RKernel(
        "gemv",
        "rows",
        "cpu",
        __name__,
        "gemv_rows",
        legal=few_rows,
        work=_work("dot"),
        reassociates=True,
        halves=True,
        contracts=True,
    ),
    *(
        RKernel(
            "gemv",
            variant,
            "cpu",
            __name__,
            "gemv_units",
            legal=lambda root: few_rows(root) and root.parallel[0] > 1,
            work=_work(kind),
            parameters=_parameters(few),
            reassociates=True,
            halves=True,
            contracts=True,
        )
        for variant, few, kind in FEW_AT_ONCE
    ),
]
