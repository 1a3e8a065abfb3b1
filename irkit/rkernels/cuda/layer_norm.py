"""Layer normalisation, a row per warp or per block; RANGE must give whole rows.

Each thread keeps its elements in registers until the statistics of the row are known; of rows too long for
that it reads them anew. Rows in memory are read four elements at once, the next ones while those before are
summed.
"""

import math

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.layer_norm import in_memory
from irkit.rkernels.row_kernels import row_rkernels
from irkit.rkernels.work import Part, Work, work


def layer_norm_fours(task, tasks, rows, scratch, OPERANDS):
    """A warp has ROWS rows in registers while the next ones come."""
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
                held[m] = ahead[m] if m // 4 % PIECES * 32 + lane < J // 4 else FLOAT(0)
        for i in range(ROWS):
            for n in range(PIECES):
                # What is not there is read where something is, and not kept.
                row = min(r + READS_AHEAD * step + i, r1 - 1)
                at = row * J + 4 * min(n * 32 + lane, J // 4 - 1)
                m = (i * PIECES + n) * 4
                ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
        if not READS_AHEAD:
            for m in range(ROWS * PIECES * 4):
                held[m] = ahead[m] if m // 4 % PIECES * 32 + lane < J // 4 else FLOAT(0)
        # The first turn only reads ahead.
        if READS_AHEAD and r < first:
            continue
        for i in range(ROWS):
            if CENTRED:
                total = FLOAT(0)
                for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                    total += held[m]
                mean = warp_sum(total) / FLOAT(J)
                for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                    held[m] = held[m] - mean if m // 4 % PIECES * 32 + lane < J // 4 else FLOAT(0)
            square = FLOAT(0)
            for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                square += held[m] * held[m]
            square = warp_sum(square)
            factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
            for n in range(PIECES):
                m = (i * PIECES + n) * 4
                j = 4 * (n * 32 + lane)
                if r + i < r1 and j < J:
                    STORE_FOUR(
                        OPERANDS, r + i, j, held[m] * factor, held[m + 1] * factor,
                        held[m + 2] * factor, held[m + 3] * factor,
                    )  # fmt: skip


def layer_norm_fours_block(task, tasks, rows, scratch, OPERANDS):
    """The same, a row for all threads of a block."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    sums = shared_of(FLOAT(0), scratch)
    squares = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    held = cuda.local.array(PIECES * 4, FLOAT)
    ahead = cuda.local.array(PIECES * 4, FLOAT)
    following = r0 + RANK - READS_AHEAD * RANKS
    while following < r1:
        r = following
        following += RANKS
        if READS_AHEAD:
            for m in range(PIECES * 4):
                held[m] = ahead[m] if m // 4 * THREADS + thread < J // 4 else FLOAT(0)
        for n in range(PIECES):
            row = min(r + READS_AHEAD * RANKS, r1 - 1)
            at = row * J + 4 * min(n * THREADS + thread, J // 4 - 1)
            m = n * 4
            ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
        if not READS_AHEAD:
            for m in range(PIECES * 4):
                held[m] = ahead[m] if m // 4 * THREADS + thread < J // 4 else FLOAT(0)
        # The first turn only reads ahead.
        if READS_AHEAD and r < r0:
            continue
        if CENTRED:
            total = FLOAT(0)
            for m in range(PIECES * 4):
                total += held[m]
            mean = block_sum(total, sums, THREADS // 32) / FLOAT(J)
            for m in range(PIECES * 4):
                held[m] = held[m] - mean if m // 4 * THREADS + thread < J // 4 else FLOAT(0)
        else:
            # The squares of the row before are read before new ones are written.
            cuda.syncthreads()
        square = FLOAT(0)
        for m in range(PIECES * 4):
            square += held[m] * held[m]
        square = block_sum(square, squares, THREADS // 32)
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for n in range(PIECES):
            m = n * 4
            j = 4 * (n * THREADS + thread)
            if j < J:
                STORE_FOUR(
                    OPERANDS, r, j, held[m] * factor, held[m + 1] * factor,
                    held[m + 2] * factor, held[m + 3] * factor,
                )  # fmt: skip


def layer_norm_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(THREAD, 32)
    row = cuda.local.array(HELD, FLOAT)
    following = r0 + warp
    while following < r1:
        r = following
        following += THREADS // 32
        total = FLOAT(0)
        for n in range(HELD):
            j = n * 32 + lane
            row[n] = LOAD(OPERANDS, r, j) if j < J else FLOAT(0)
            total += row[n]
        if CENTRED:
            mean = warp_sum(total) / FLOAT(J)
            for n in range(HELD):
                row[n] = row[n] - mean if n * 32 + lane < J else FLOAT(0)
        square = FLOAT(0)
        for n in range(HELD):
            square += row[n] * row[n]
        square = warp_sum(square)
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for n in range(HELD):
            j = n * 32 + lane
            if j < J:
                STORE(OPERANDS, r, j, row[n] * factor)


def layer_norm_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    sums = shared_of(FLOAT(0), scratch)
    squares = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    row = cuda.local.array(HELD, FLOAT)
    following = r0 + RANK
    while following < r1:
        r = following
        following += RANKS
        total = FLOAT(0)
        for n in range(HELD):
            j = n * THREADS + thread
            row[n] = LOAD(OPERANDS, r, j) if j < J else FLOAT(0)
            total += row[n]
        if CENTRED:
            mean = block_sum(total, sums, THREADS // 32) / FLOAT(J)
            for n in range(HELD):
                row[n] = row[n] - mean if n * THREADS + thread < J else FLOAT(0)
        else:
            # The squares of the row before are read before new ones are written.
            cuda.syncthreads()
        square = FLOAT(0)
        for n in range(HELD):
            square += row[n] * row[n]
        square = block_sum(square, squares, THREADS // 32)
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for n in range(HELD):
            j = n * THREADS + thread
            if j < J:
                STORE(OPERANDS, r, j, row[n] * factor)


def layer_norm_long(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    sums = shared_of(FLOAT(0), scratch)
    squares = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    following = r0 + RANK
    while following < r1:
        r = following
        following += RANKS
        mean = FLOAT(0)
        if CENTRED:
            total = FLOAT(0)
            for j in range(thread, J, THREADS):
                total += LOAD(OPERANDS, r, j)
            mean = block_sum(total, sums, THREADS // 32) / FLOAT(J)
        else:
            # The squares of the row before are read before new ones are written.
            cuda.syncthreads()
        square = FLOAT(0)
        for j in range(thread, J, THREADS):
            x = LOAD(OPERANDS, r, j) - mean
            square += x * x
        square = block_sum(square, squares, THREADS // 32)
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for j in range(thread, J, THREADS):
            STORE(OPERANDS, r, j, (LOAD(OPERANDS, r, j) - mean) * factor)


def _stored(root: Root) -> bool:
    return in_memory(root) is not None


def _arithmetic(part: Part, sweeps: int) -> Work:
    each = part.loads * sweeps + work(scalar=3) + part.store
    return each * part.elements + work(divide=3) * part.rows


def _arithmetic_of_fours(part: Part) -> Work:
    """Four elements are read at once, and the next ones come meanwhile."""
    each = part.loads * 0.25 + work(scalar=3) + part.store
    return each * part.elements + work(divide=3) * part.rows


RKERNELS = row_rkernels("layer_norm", __name__, _stored, _arithmetic, _arithmetic_of_fours)
