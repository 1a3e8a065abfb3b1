"""Softmax over the last dimension, a row per warp or per block; RANGE must give whole rows.

Threads keep their elements in registers, so that each is read and raised once; of rows too long for that they
are read and raised anew. Rows in memory are read and stored four elements at once, the next ones while those
before are summed: a multiprocessor with one block hides the way to memory by nothing else.
"""

import math
from typing import Final

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.softmax import exponentials, stored
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.row_fours import BLOCK
from irkit.rkernels.row_kernels import SHARED, by_blocks, row_rkernels
from irkit.rkernels.work import Part, Work, work

_KEPT: Final = 8192
"""Elements of a row from which on registers keep none."""


def softmax_fours(task, tasks, rows, scratch, OPERANDS):
    """Rows in memory, of whole fours: a warp has ROWS of them in registers while the next ones come."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(THREAD, 32)
    held = cuda.local.array(ROWS * PIECES * 4, FLOAT)
    ahead = cuda.local.array(ROWS * PIECES * 4, FLOAT)
    step = THREADS // 32 * ROWS
    first = r0 + warp * ROWS
    following = first - READS_AHEAD * step
    while following < r1:
        r = following
        following += step
        if READS_AHEAD:
            for m in range(ROWS * PIECES * 4):
                held[m] = ahead[m]
        for i in range(ROWS):
            for n in range(PIECES):
                # What is not there is read where something is, and not kept.
                row = min(r + READS_AHEAD * step + i, r1 - 1)
                at = row * J + 4 * min(n * 32 + lane, J // 4 - 1)
                m = (i * PIECES + n) * 4
                ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
        if not READS_AHEAD:
            for m in range(ROWS * PIECES * 4):
                held[m] = ahead[m]
        # The first turn only reads ahead.
        if READS_AHEAD and r < first:
            continue
        for i in range(ROWS):
            # A NaN must reach every output: it makes the sum NaN, even if the maximum drops it.
            largest = FLOAT(-math.inf)
            for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                largest = max(largest, held[m])
            largest = warp_largest(largest)
            total = FLOAT(0)
            for n in range(PIECES):
                for m in range((i * PIECES + n) * 4, (i * PIECES + n) * 4 + 4):
                    held[m] = EXP(held[m] - largest)
                    total += held[m] if n * 32 + lane < J // 4 else FLOAT(0)
            total = warp_sum(total)
            share = FLOAT(1) / total
            for n in range(PIECES):
                m = (i * PIECES + n) * 4
                if r + i < r1 and n * 32 + lane < J // 4:
                    STORE_FOUR(
                        OPERANDS, r + i, 4 * (n * 32 + lane), held[m] * share,
                        held[m + 1] * share, held[m + 2] * share, held[m + 3] * share,
                    )  # fmt: skip


def softmax_fours_block(task, tasks, rows, scratch, OPERANDS):
    """The same, a row for all threads of a block."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    maxima = shared_of(FLOAT(0), scratch)
    totals = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    held = cuda.local.array(PIECES * 4, FLOAT)
    ahead = cuda.local.array(PIECES * 4, FLOAT)
    following = r0 + RANK - READS_AHEAD * RANKS
    while following < r1:
        r = following
        following += RANKS
        if READS_AHEAD:
            for m in range(PIECES * 4):
                held[m] = ahead[m]
        for n in range(PIECES):
            row = min(r + READS_AHEAD * RANKS, r1 - 1)
            at = row * J + 4 * min(n * THREADS + thread, J // 4 - 1)
            m = n * 4
            ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
        if not READS_AHEAD:
            for m in range(PIECES * 4):
                held[m] = ahead[m]
        # The first turn only reads ahead.
        if READS_AHEAD and r < r0:
            continue
        largest = FLOAT(-math.inf)
        for m in range(PIECES * 4):
            largest = max(largest, held[m])
        largest = block_largest(largest, maxima, THREADS // 32)
        total = FLOAT(0)
        for n in range(PIECES):
            for m in range(n * 4, n * 4 + 4):
                held[m] = EXP(held[m] - largest)
                total += held[m] if n * THREADS + thread < J // 4 else FLOAT(0)
        total = block_sum(total, totals, THREADS // 32)
        share = FLOAT(1) / total
        for n in range(PIECES):
            m = n * 4
            if n * THREADS + thread < J // 4:
                STORE_FOUR(
                    OPERANDS, r, 4 * (n * THREADS + thread), held[m] * share,
                    held[m + 1] * share, held[m + 2] * share, held[m + 3] * share,
                )  # fmt: skip


def softmax_warp(task, tasks, rows, scratch, OPERANDS):
    """What is computed on the way to a row, and its exponentials, are computed once and kept in registers."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(THREAD, 32)
    row = cuda.local.array(HELD, FLOAT)
    following = r0 + warp
    while following < r1:
        r = following
        following += THREADS // 32
        largest = FLOAT(-math.inf)
        for n in range(HELD):
            j = n * 32 + lane
            row[n] = LOAD(OPERANDS, r, j) if j < J else FLOAT(-math.inf)
            largest = max(largest, row[n])
        largest = warp_largest(largest)
        total = FLOAT(0)
        for n in range(HELD):
            row[n] = EXP(row[n] - largest)
            total += row[n] if n * 32 + lane < J else FLOAT(0)
        total = warp_sum(total)
        for n in range(HELD):
            j = n * 32 + lane
            if j < J:
                STORE(OPERANDS, r, j, row[n] / total)


def softmax_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    maxima = shared_of(FLOAT(0), scratch)
    totals = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    row = cuda.local.array(HELD, FLOAT)
    following = r0 + RANK
    while following < r1:
        r = following
        following += RANKS
        largest = FLOAT(-math.inf)
        for n in range(HELD):
            j = n * THREADS + thread
            row[n] = LOAD(OPERANDS, r, j) if j < J else FLOAT(-math.inf)
            largest = max(largest, row[n])
        largest = block_largest(largest, maxima, THREADS // 32)
        total = FLOAT(0)
        for n in range(HELD):
            row[n] = EXP(row[n] - largest)
            total += row[n] if n * THREADS + thread < J else FLOAT(0)
        total = block_sum(total, totals, THREADS // 32)
        for n in range(HELD):
            j = n * THREADS + thread
            if j < J:
                STORE(OPERANDS, r, j, row[n] / total)


def softmax_long(task, tasks, rows, scratch, OPERANDS):
    """Rows too long for registers are read, and raised, anew."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    maxima = shared_of(FLOAT(0), scratch)
    totals = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    following = r0 + RANK
    while following < r1:
        r = following
        following += RANKS
        largest = FLOAT(-math.inf)
        for j in range(thread, J, THREADS):
            largest = max(largest, LOAD(OPERANDS, r, j))
        largest = block_largest(largest, maxima, THREADS // 32)
        total = FLOAT(0)
        for j in range(thread, J, THREADS):
            total += EXP(LOAD(OPERANDS, r, j) - largest)
        total = block_sum(total, totals, THREADS // 32)
        for j in range(thread, J, THREADS):
            STORE(OPERANDS, r, j, EXP(LOAD(OPERANDS, r, j) - largest) / total)


def softmax_fours_long(task, tasks, rows, scratch, OPERANDS):
    """The same in memory, of whole fours: read twice, sixteen elements of a thread on their way together."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    maxima = shared_of(FLOAT(0), scratch)
    totals = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    near = cuda.local.array(16, FLOAT)
    following = r0 + RANK
    while following < r1:
        r = following
        following += RANKS
        largest = FLOAT(-math.inf)
        total = FLOAT(0)
        start = thread
        while start < J // 4:
            for n in range(4):
                # Behind the end of a row its last four is read once more.
                at = r * J + 4 * min(start + n * THREADS, J // 4 - 1)
                m = n * 4
                near[m], near[m + 1], near[m + 2], near[m + 3] = load_four(SOURCE, at, VECTOR)
            before = largest
            for m in range(16):
                largest = max(largest, near[m])
            # As long as there is nothing but -inf, nothing is taken away: their powers are 0.
            base = largest if largest > FLOAT(-math.inf) else FLOAT(0)
            total *= EXP(before - base)
            for n in range(4):
                if start + n * THREADS < J // 4:
                    for m in range(n * 4, n * 4 + 4):
                        total += EXP(near[m] - base)
            start += 4 * THREADS
        base = block_largest(largest, maxima, THREADS // 32)
        total = block_sum(total * EXP(largest - base), totals, THREADS // 32)
        share = FLOAT(1) / total
        start = thread
        while start < J // 4:
            for n in range(4):
                at = r * J + 4 * min(start + n * THREADS, J // 4 - 1)
                m = n * 4
                near[m], near[m + 1], near[m + 2], near[m + 3] = load_four(SOURCE, at, VECTOR)
            for m in range(16):
                near[m] = EXP(near[m] - base) * share
            for n in range(4):
                if start + n * THREADS < J // 4:
                    m = n * 4
                    STORE_FOUR(
                        OPERANDS, r, 4 * (start + n * THREADS), near[m], near[m + 1],
                        near[m + 2], near[m + 3],
                    )  # fmt: skip
            start += 4 * THREADS


def _stored(root: Root) -> bool:
    return stored(root) is not None


def _long_in_memory(root: Root) -> bool:
    return root.parallel[-1] > _KEPT and root.parallel[-1] % 4 == 0 and _stored(root)


def _arithmetic(part: Part, sweeps: int) -> Work:
    raised = exponentials(part, 1 if sweeps == 1 else 2)
    each = part.loads * sweeps + work(scalar=3, divide=1) + raised + part.store
    return each * part.elements


def _arithmetic_of_fours(part: Part) -> Work:
    """Four elements are read and stored at once, and the next ones come meanwhile."""
    each = part.loads * 0.25 + work(op=0.25, scalar=2) + exponentials(part, 1) + part.store
    return each * part.elements + work(divide=1) * part.rows


def _long_work(part: Part) -> Work:
    """Two sweeps, of which sixteen elements of a thread take as long as eight that wait for one another."""
    chain = 2 * 8 * math.ceil(part.width / (16 * part.threads))
    waits = work(chain=chain, shuffle=10, barrier=2) * part.rows
    return waits + (_arithmetic_of_fours(part) + exponentials(part, 1) * part.elements)


RKERNELS = [
    *row_rkernels("softmax", __name__, _stored, _arithmetic, _arithmetic_of_fours),
    RKernel(
        "softmax",
        "fours_long",
        "cuda",
        __name__,
        "softmax_fours_long",
        legal=_long_in_memory,
        work=_long_work,
        reassociates=True,
        vectors=("SOURCE",),
        scratch_bytes=SHARED,
        threads=BLOCK,
        spreads=by_blocks,
    ),
]
