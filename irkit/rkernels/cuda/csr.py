"""csr, csr_dense and csr_reduce: what rows of a CSR matrix have stored, by thread and by warp.

`csr_product` and `csr_reduction` give every thread an element of the result, whose terms it adds up in the
order in which they are stored: neighbouring threads have neighbouring columns, so they read one element
together and neighbours of the matrix. `csr_sum` and `csr_lanes` give a row to the 32 lanes of a warp, which
read neighbours of what is stored, and join theirs at the end: in another order. `csr_rows` gives every thread
elements of dense rows, and then the lanes of a warp what a row has stored.
"""

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.csr import STORED_PER_ROW
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work

WARP = 32
ROWS_AT_ONCE = 8
"""As many as the warps of a block."""


def csr_product(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    element = thread_index()
    while element < (r1 - r0) * COLUMNS:
        row, j = divide(element, COLUMNS)
        r = r0 + row
        acc = FLOAT(0)
        for k in range(FIRST(OPERANDS, r), LAST(OPERANDS, r)):
            c = COLUMN(OPERANDS, k)
            acc += ELEMENT(OPERANDS, r, k, c) * MATRIX[c * COLUMNS + j]
        STORE(OPERANDS, r, j, acc)
        element += THREADS


def csr_sum(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    r = r0 + warp
    while r < r1:
        acc = FLOAT(0)
        last = LAST(OPERANDS, r)
        k = FIRST(OPERANDS, r) + lane
        while k < last:
            c = COLUMN(OPERANDS, k)
            acc += ELEMENT(OPERANDS, r, k, c) * MATRIX[c]
            k += 32
        acc = warp_sum(acc)
        if lane == 0:
            STORE(OPERANDS, r, 0, acc)
        r += THREADS // 32


def csr_reduction(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    r = r0 + thread_index()
    while r < r1:
        acc = INITIAL
        for k in range(FIRST(OPERANDS, r), LAST(OPERANDS, r)):
            acc = COMBINE(acc, ELEMENT(OPERANDS, r, k, COLUMN(OPERANDS, k)))
        STORE(OPERANDS, r, 0, acc)
        r += THREADS


def csr_lanes(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    r = r0 + warp
    while r < r1:
        first, last = FIRST(OPERANDS, r), LAST(OPERANDS, r)
        k = first + lane
        acc = INITIAL
        # The first lane alone begins with INITIAL, which joins once.
        if lane > 0 and k < last:
            acc = ELEMENT(OPERANDS, r, k, COLUMN(OPERANDS, k))
            k += 32
        while k < last:
            acc = COMBINE(acc, ELEMENT(OPERANDS, r, k, COLUMN(OPERANDS, k)))
            k += 32
        distance = 16
        while distance > 0:
            other = cuda.shfl_down_sync(0xFFFFFFFF, acc, distance)
            # A lane behind the last element has nothing.
            if lane + distance < min(32, last - first):
                acc = COMBINE(acc, other)
            distance >>= 1
        if lane == 0:
            STORE(OPERANDS, r, 0, acc)
        r += THREADS // 32


def csr_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    element = thread_index()
    while element < (r1 - r0) * COLUMNS:
        row, c = divide(element, COLUMNS)
        STORE(OPERANDS, r0 + row, c, INITIAL)
        element += THREADS
    cuda.syncthreads()
    warp, lane = divide(thread_index(), 32)
    r = r0 + warp
    while r < r1:
        last = LAST(OPERANDS, r)
        k = FIRST(OPERANDS, r) + lane
        while k < last:
            c = COLUMN(OPERANDS, k)
            STORE(OPERANDS, r, c, ELEMENT(OPERANDS, r, k, c))
            k += 32
        r += THREADS // 32


def _one(root: Root) -> bool:
    return root.parallel[-1] == 1


def _thread_work(part: Part) -> Work:
    """Elements at a time, as many as there are threads; each waits for all that its row has stored."""
    waits = work(chain=STORED_PER_ROW) * part.rounds(part.elements, part.threads)
    sums = work(fma=part.lanes, gather=2) * (STORED_PER_ROW * part.elements)
    return waits + sums + part.store * part.elements


def _warp_work(part: Part) -> Work:
    """Rows at a time, as many as there are warps."""
    rounds = part.rounds(part.elements, max(1, part.threads // WARP))
    waits = work(chain=STORED_PER_ROW / WARP, shuffle=5) * rounds
    sums = work(fma=part.lanes, gather=1) * (STORED_PER_ROW * part.elements)
    return waits + sums + part.store * part.elements


def _dense_work(part: Part) -> Work:
    """All elements are stored, and those of a row that are there found and stored again."""
    found = STORED_PER_ROW * part.rows
    waits = work(chain=STORED_PER_ROW / WARP) * part.rounds(part.rows, max(1, part.threads // WARP))
    return waits + work(gather=1) * found + part.store * (part.elements + found)


def _rkernel(family: str, variant: str, function: str, by_warp: bool) -> RKernel:
    return RKernel(
        family,
        variant,
        "cuda",
        __name__,
        function,
        legal=_one if by_warp else lambda root: True,
        work=_warp_work if by_warp else _thread_work,
        reassociates=by_warp,
        rows_at_once=ROWS_AT_ONCE,
    )


RKERNELS = [
    _rkernel("csr", "thread", "csr_product", False),
    _rkernel("csr", "warp", "csr_sum", True),
    RKernel(
        "csr_dense",
        "warp",
        "cuda",
        __name__,
        "csr_rows",
        work=_dense_work,
        rows_at_once=ROWS_AT_ONCE,
        stores_again=True,
    ),
    _rkernel("csr_reduce", "thread", "csr_reduction", False),
    _rkernel("csr_reduce", "warp", "csr_lanes", True),
]
