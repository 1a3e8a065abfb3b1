"""recurrent_cell: acc[g] = sum_t sum_k Xt[b, k] * Wt[u, g, k], then the epilogue of unit u.

Nothing here knows which cell it is: two terms, a group of gates, and what the epilogue does with them.
The sums of up to 64 units are computed first, rows of W side by side; then their epilogues run in a loop of
their own, which LLVM computes in vector registers.
"""

from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.row_terms import JOINING_EIGHT, multiply_adds
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def cell_two_terms(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    sums = STACK(64 * G)
    acc = STACK(G)
    for b in range(BATCH):
        for first in range(u0, u1, 64):
            count = min(64, u1 - first)
            row = first * G
            dot_rows_of_two(
                count * G, K0, X0, b * K0, W0, row * K0, K1, X1, b * K1, W1, row * K1, sums, 0
            )
            for i in range(count):
                for g in range(G):
                    acc[g] = INIT(OPERANDS, b, first + i, g) + sums[i * G + g]
                STORE(OPERANDS, b, first + i, acc)


def cell_one_term(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    sums = STACK(64 * G)
    acc = STACK(G)
    for b in range(BATCH):
        for first in range(u0, u1, 64):
            count = min(64, u1 - first)
            dot_rows(count * G, K0, X0, b * K0, W0, first * G * K0, sums, 0)
            for i in range(count):
                for g in range(G):
                    acc[g] = INIT(OPERANDS, b, first + i, g) + sums[i * G + g]
                STORE(OPERANDS, b, first + i, acc)


def terms(count: int) -> Callable[[Root], bool]:
    """Legal for chains of `count` terms."""
    return lambda root: len(root.chain) == count


def _work(part: Part) -> Work:
    units = part.share((0, 1))
    joined = work(op=JOINING_EIGHT) * part.elements
    return work(dot=multiply_adds(part)) + joined + (part.store + work(op=1)) * units


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
