"""recurrent_cell: acc[g] = sum_t sum_k Xt[b, k] * Wt[u, g, k], then the epilogue of unit u.

Nothing here knows which cell it is: two terms, a group of gates, and what the epilogue does with them.
"""

from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.row_terms import JOINING, multiply_adds
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def cell_two_terms(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    acc = STACK(G)
    for b in range(BATCH):
        for u in range(u0, u1):
            for g in range(G):
                row = u * G + g
                total = dot_product(K0, X0, b * K0, W0, row * K0)
                total += dot_product(K1, X1, b * K1, W1, row * K1)
                acc[g] = INIT(OPERANDS, b, u, g) + total
            STORE(OPERANDS, b, u, acc)


def cell_one_term(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    acc = STACK(G)
    for b in range(BATCH):
        for u in range(u0, u1):
            for g in range(G):
                total = dot_product(K0, X0, b * K0, W0, (u * G + g) * K0)
                acc[g] = INIT(OPERANDS, b, u, g) + total
            STORE(OPERANDS, b, u, acc)


def terms(count: int) -> Callable[[Root], bool]:
    """Legal for chains of `count` terms."""
    return lambda root: len(root.chain) == count


def _work(part: Part) -> Work:
    units = part.share((0, 1))
    joined = work(row=1, chain=JOINING) * (part.elements * len(part.root.chain))
    return work(dot=multiply_adds(part)) + joined + part.store * units


RKERNELS = [
    RKernel(
        "recurrent_cell",
        f"terms{count}",
        "cpu",
        __name__,
        function,
        legal=terms(count),
        work=_work,
        reassociates=True,
        halves=True,
        contracts=True,
    )
    for count, function in ((1, "cell_one_term"), (2, "cell_two_terms"))
]
