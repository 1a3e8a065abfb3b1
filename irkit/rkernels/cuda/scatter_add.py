"""scatter_add: a block of places has its sums in shared memory while all indices go by.

Of so many indices at a time the threads list those that name a place of the block, in order, each a piece of
them; then each thread goes through the list for the sums that are its own, and adds. So an element is summed
in the order of the indices, without atomics, and has the same bits in every run.
"""

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.scatter_add import updates_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def scatter_add_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    acc = shared_of(FLOAT(0), scratch)
    named = shared_i32(scratch + SUMS)
    counts = shared_i32(scratch + SUMS + 4 * LISTED)
    # Thread group g has every GROUPS-th place of the block, thread c of it every THREADS-th column.
    g, c0 = divide(thread, COLUMNS)
    for left in range(j0, j1, COLUMNS):
        width = min(COLUMNS, j1 - left)
        for top in range(r0, r1, BLOCK):
            count = min(BLOCK, r1 - top)
            if g < GROUPS:
                for v in range(g, count, GROUPS):
                    for c in range(c0, width, THREADS):
                        acc[v * COLUMNS + c] = INIT(OPERANDS, top + v, left + c)
            for base in range(0, N, LISTED):
                first = base + thread * PIECE
                last = min(min(first + PIECE, base + LISTED), N)
                mine = 0
                for n in range(first, last):
                    v = INDEX(OPERANDS, n) - top
                    if v >= 0 and v < count:
                        mine += 1
                counts[thread] = mine
                cuda.syncthreads()
                place, total = 0, 0
                for t in range(THREADS):
                    if t == thread:
                        place = total
                    total += counts[t]
                for n in range(first, last):
                    v = INDEX(OPERANDS, n) - top
                    if v >= 0 and v < count:
                        named[place] = v * LISTED + (n - base)
                        place += 1
                cuda.syncthreads()
                if g < GROUPS:
                    for k in range(0, total, 4):
                        # Four are loaded before the first is added.
                        v0, n0 = divide(named[k], LISTED)
                        v1, n1 = divide(named[min(k + 1, total - 1)], LISTED)
                        v2, n2 = divide(named[min(k + 2, total - 1)], LISTED)
                        v3, n3 = divide(named[min(k + 3, total - 1)], LISTED)
                        for c in range(c0, width, THREADS):
                            x0 = UPDATE(OPERANDS, base + n0, left + c)
                            x1 = UPDATE(OPERANDS, base + n1, left + c)
                            x2 = UPDATE(OPERANDS, base + n2, left + c)
                            x3 = UPDATE(OPERANDS, base + n3, left + c)
                            if v0 % GROUPS == g:
                                acc[v0 * COLUMNS + c] += x0
                            if k + 1 < total and v1 % GROUPS == g:
                                acc[v1 * COLUMNS + c] += x1
                            if k + 2 < total and v2 % GROUPS == g:
                                acc[v2 * COLUMNS + c] += x2
                            if k + 3 < total and v3 % GROUPS == g:
                                acc[v3 * COLUMNS + c] += x3
            if g < GROUPS:
                for v in range(g, count, GROUPS):
                    for c in range(c0, width, THREADS):
                        STORE(OPERANDS, top + v, left + c, acc[v * COLUMNS + c])


THREADS_PER_BLOCK, TOGETHER, WIDEST, LISTED = 256, 1 << 12, 1 << 10, 1 << 11
"""Sums in shared memory at a time, and of one place; indices that are looked at together."""


def _parameters(root: Root) -> dict[str, int]:
    places, width = root.parallel
    columns = min(width, WIDEST)
    block = min(places, TOGETHER // columns)
    return {
        "BLOCK": block,
        "COLUMNS": columns,
        "GROUPS": max(1, min(block, THREADS_PER_BLOCK // columns)),
        "LISTED": LISTED,
        "PIECE": LISTED // THREADS_PER_BLOCK,
        "SUMS": -(-block * columns * _itemsize(root) // 16) * 16,
    }


def _itemsize(root: Root) -> int:
    assert root.value is not None
    return numpy_dtype(tensor_type(root.value).element_type).itemsize


def _scratch(root: Root, parameters: Parameters) -> int:
    return parameters["SUMS"] + 4 * (LISTED + THREADS_PER_BLOCK)


def _work(part: Part) -> Work:
    """Indices are looked at twice by each block of sums; the list is gone through four at a time."""
    (places, width), known = part.sizes, _parameters(part.root)
    count = updates_of(part.root)
    passes = part.rounds(places, known["BLOCK"]) * part.rounds(width, known["COLUMNS"])
    lists = passes * part.rounds(count, LISTED)
    here = count * places / part.root.parallel[0]
    looks = work(scalar=6 * passes * count) + work(barrier=2, round=1) * lists
    across = part.rounds(width, THREADS_PER_BLOCK)
    added = work(op=2 * width * part.lanes) * here + work(round=across) * (here / 4)
    return looks + added + part.store * part.elements


RKERNELS = [
    RKernel(
        "scatter_add",
        "block",
        "cuda",
        __name__,
        "scatter_add_block",
        work=_work,
        parameters=_parameters,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
    )
]
