"""csr, csr_dense and csr_reduce: row by row, element by element, in the order in which they are stored.

A row's sums lie on the stack; each element adds a row of the matrix to them, in vector registers where there
are many.
"""

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.csr import STORED_PER_ROW
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def csr_product(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK)
    for r in range(r0, r1):
        first, last = FIRST(OPERANDS, r), LAST(OPERANDS, r)
        for start in range(0, COLUMNS, BLOCK):
            count = min(BLOCK, COLUMNS - start)
            for j in range(count):
                acc[j] = FLOAT(0)
            for k in range(first, last):
                c = COLUMN(OPERANDS, k)
                x = ELEMENT(OPERANDS, r, k, c)
                at = c * COLUMNS + start
                for j in range(count):
                    acc[j] += x * MATRIX[at + j]
            for j in range(count):
                STORE(OPERANDS, r, start + j, acc[j])


def csr_sum(task, tasks, rows, scratch, OPERANDS):
    """One sum a row, of two rows at a time: an addition waits for the one before it in its own row alone."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1, 2):
        # The last row may stand alone: then the other has nothing.
        s = min(r + 1, r1 - 1)
        k, end = FIRST(OPERANDS, r), LAST(OPERANDS, r)
        m, stop = FIRST(OPERANDS, s), LAST(OPERANDS, s) if s > r else FIRST(OPERANDS, s)
        acc, other = FLOAT(0), FLOAT(0)
        for i in range(min(end - k, stop - m)):
            c, d = COLUMN(OPERANDS, k), COLUMN(OPERANDS, m)
            acc += ELEMENT(OPERANDS, r, k, c) * MATRIX[c]
            other += ELEMENT(OPERANDS, s, m, d) * MATRIX[d]
            k += 1
            m += 1
        for n in range(k, end):
            c = COLUMN(OPERANDS, n)
            acc += ELEMENT(OPERANDS, r, n, c) * MATRIX[c]
        for n in range(m, stop):
            d = COLUMN(OPERANDS, n)
            other += ELEMENT(OPERANDS, s, n, d) * MATRIX[d]
        STORE(OPERANDS, r, 0, acc)
        if s > r:
            STORE(OPERANDS, s, 0, other)


def csr_reduction(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        acc = INITIAL
        for k in range(FIRST(OPERANDS, r), LAST(OPERANDS, r)):
            acc = COMBINE(acc, ELEMENT(OPERANDS, r, k, COLUMN(OPERANDS, k)))
        STORE(OPERANDS, r, 0, acc)


def csr_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for c in range(COLUMNS):
            STORE(OPERANDS, r, c, INITIAL)
        for k in range(FIRST(OPERANDS, r), LAST(OPERANDS, r)):
            c = COLUMN(OPERANDS, k)
            STORE(OPERANDS, r, c, ELEMENT(OPERANDS, r, k, c))


TOGETHER = 1 << 9
"""Sums of a row that lie on the stack at a time."""


def _several(root: Root) -> bool:
    return root.parallel[-1] > 1


def _one(root: Root) -> bool:
    return root.parallel[-1] == 1


def _work(part: Part) -> Work:
    """An element of a row is found, and its row of the matrix added."""
    stored = part.rows * STORED_PER_ROW
    sums = work(fma=part.lanes * part.width) * stored
    return work(gather=stored, row=part.rows) + sums + part.store * part.elements


def _dense_work(part: Part) -> Work:
    """All elements are stored, and those of a row that are there found and stored again."""
    found = part.rows * STORED_PER_ROW
    return work(gather=found, row=part.rows) + part.store * (part.elements + found)


RKERNELS = [
    RKernel(
        "csr",
        "rows",
        "cpu",
        __name__,
        "csr_product",
        legal=_several,
        work=_work,
        parameters=lambda root: {"BLOCK": min(root.parallel[-1], TOGETHER)},
        choices={"BLOCK": range(1, TOGETHER + 1)},
    ),
    RKernel("csr", "one", "cpu", __name__, "csr_sum", legal=_one, work=_work),
    RKernel("csr_dense", "rows", "cpu", __name__, "csr_rows", work=_dense_work, stores_again=True),
    RKernel("csr_reduce", "rows", "cpu", __name__, "csr_reduction", work=_work),
]
