"""recurrent_cell: acc[g] = sum_t sum_k Xt[b, k] * Wt[u, g, k], then the epilogue of unit u.

Nothing here knows which cell it is: two terms, a group of gates, and what the epilogue does with them.
The sums of up to 64 units are computed first, rows of W side by side, of FEW rows of X at once and at last
of LEFT; then their epilogues run in a loop of their own, which LLVM computes in vector registers.
"""

from collections.abc import Callable
from functools import partial

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.families.row_terms import JOINING_EIGHT, MOST_AT_ONCE, dots
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def cell_two_terms(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    sums = STACK(FEW * 64 * G)
    acc = STACK(G)
    for b in range(FIRST, LAST, FEW):
        high = min(FEW, LAST - b)
        for first in range(u0, u1, 64):
            count = min(64, u1 - first)
            n, at0, at1 = count * G, first * G * K0, first * G * K1
            if high == FEW:
                dot_rows_of_two_each(
                    FEW, n, K0, X0, b * K0, W0, at0, K1, X1, b * K1, W1, at1, sums, 0, 64 * G
                )
            elif LEFT:
                dot_rows_of_two_each(
                    LEFT, n, K0, X0, b * K0, W0, at0, K1, X1, b * K1, W1, at1, sums, 0, 64 * G
                )
            else:
                for y in range(high):
                    of_x, of_h, at = (b + y) * K0, (b + y) * K1, y * 64 * G
                    dot_rows_of_two(n, K0, X0, of_x, W0, at0, K1, X1, of_h, W1, at1, sums, at)
            for y in range(high):
                for i in range(count):
                    for g in range(G):
                        known = sums[(y * 64 + i) * G + g]
                        acc[g] = INIT(OPERANDS, b + y, first + i, g) + known
                    STORE(OPERANDS, b + y, first + i, acc)


def cell_one_term(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    sums = STACK(FEW * 64 * G)
    acc = STACK(G)
    for b in range(FIRST, LAST, FEW):
        high = min(FEW, LAST - b)
        for first in range(u0, u1, 64):
            count = min(64, u1 - first)
            n, at0 = count * G, first * G * K0
            if high == FEW:
                dot_rows_of_each(FEW, n, K0, X0, b * K0, W0, at0, sums, 0, 64 * G)
            elif LEFT:
                dot_rows_of_each(LEFT, n, K0, X0, b * K0, W0, at0, sums, 0, 64 * G)
            else:
                for y in range(high):
                    dot_rows(n, K0, X0, (b + y) * K0, W0, at0, sums, y * 64 * G)
            for y in range(high):
                for i in range(count):
                    for g in range(G):
                        known = sums[(y * 64 + i) * G + g]
                        acc[g] = INIT(OPERANDS, b + y, first + i, g) + known
                    STORE(OPERANDS, b + y, first + i, acc)


def _legal(count: int, few: int) -> Callable[[Root], bool]:
    """Chains of `count` terms over one row, or over several if `few` are computed at once."""
    return lambda root: len(root.chain) == count and (root.parallel[0] == 1) == (few == 1)


def _parameters(few: int, root: Root) -> Parameters:
    """LEFT: how many rows are left at last, where that is known."""
    rows = root.parallel[0]
    if rows == DYNAMIC:
        return {"FEW": few, "LEFT": 0}
    # As few passes over the weights as registers allow, each of about as many rows.
    passes = -(-rows // MOST_AT_ONCE[few])
    few = -(-rows // passes)
    return {"FEW": few, "LEFT": rows % few}


def _work(kind: str) -> Callable[[Part], Work]:
    def counted(part: Part) -> Work:
        units = part.share((0, 1))
        joined = work(op=JOINING_EIGHT) * part.elements
        return dots(part, kind) + joined + (part.store + work(op=1)) * units

    return counted


RKERNELS = [
    RKernel(
        "recurrent_cell",
        f"{prefix}terms{count}",
        "cpu",
        __name__,
        function,
        legal=_legal(count, few),
        work=_work(kind),
        parameters=partial(_parameters, few),
        reassociates=True,
        halves=True,
        contracts=True,
    )
    for count, function in ((1, "cell_one_term"), (2, "cell_two_terms"))
    for prefix, few, kind in (("", 1, "dot"), ("few_", 2, "fma"), ("wide_", 4, "wide"))
]
