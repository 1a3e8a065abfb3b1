"""Layer normalisation, a row per warp or per block; RANGE must give whole rows.

Each thread keeps its elements in registers until the statistics of the row are known; of rows too long for
that it reads them anew. Rows in memory are read four elements at once, the next ones while those before are
summed.
"""

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.layer_norm import in_memory
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.row_fours import (
    BLOCK,
    block_pieces,
    block_waits,
    in_fours,
    in_fours_of_a_block,
    warp_pieces,
    warp_waits,
)
from irkit.rkernels.work import Part, Work, work


def layer_norm_fours(task, tasks, rows, scratch, OPERANDS):
    """A warp has ROWS rows in registers while the next ones come."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    held = cuda.local.array(ROWS * PIECES * 4, FLOAT)
    ahead = cuda.local.array(ROWS * PIECES * 4, FLOAT)
    for i in range(ROWS):
        for n in range(PIECES):
            # What is not there is read where something is, and not kept.
            row = min(r0 + warp * ROWS + i, r1 - 1)
            at = row * J + 4 * min(n * 32 + lane, J // 4 - 1)
            m = (i * PIECES + n) * 4
            ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
    for r in range(r0 + warp * ROWS, r1, THREADS // 32 * ROWS):
        for m in range(ROWS * PIECES * 4):
            held[m] = ahead[m] if m // 4 % PIECES * 32 + lane < J // 4 else FLOAT(0)
        for i in range(ROWS):
            for n in range(PIECES):
                row = min(r + THREADS // 32 * ROWS + i, r1 - 1)
                at = row * J + 4 * min(n * 32 + lane, J // 4 - 1)
                m = (i * PIECES + n) * 4
                ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
        for i in range(ROWS):
            if CENTRED:
                total = FLOAT(0)
                for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                    total += held[m]
                distance = 16
                while distance > 0:
                    total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
                    distance >>= 1
                mean = total / FLOAT(J)
                for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                    held[m] = held[m] - mean if m // 4 % PIECES * 32 + lane < J // 4 else FLOAT(0)
            square = FLOAT(0)
            for m in range(i * PIECES * 4, (i + 1) * PIECES * 4):
                square += held[m] * held[m]
            distance = 16
            while distance > 0:
                square += cuda.shfl_xor_sync(0xFFFFFFFF, square, distance)
                distance >>= 1
            factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
            for n in range(PIECES):
                m = (i * PIECES + n) * 4
                j = 4 * (n * 32 + lane)
                if r + i < r1 and j < J:
                    if STORED:
                        store_four(
                            TARGET, (r + i) * J + j, held[m] * factor, held[m + 1] * factor,
                            held[m + 2] * factor, held[m + 3] * factor, VECTOR,
                        )  # fmt: skip
                    else:
                        for e in range(4):
                            STORE(OPERANDS, r + i, j + e, held[m + e] * factor)


def layer_norm_fours_block(task, tasks, rows, scratch, OPERANDS):
    """The same, a row for all threads of a block."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    sums = shared_of(FLOAT(0), scratch)
    squares = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    held = cuda.local.array(PIECES * 4, FLOAT)
    ahead = cuda.local.array(PIECES * 4, FLOAT)
    for n in range(PIECES):
        at = r0 * J + 4 * min(n * THREADS + thread, J // 4 - 1)
        m = n * 4
        ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
    for r in range(r0, r1):
        total = FLOAT(0)
        for m in range(PIECES * 4):
            held[m] = ahead[m] if m // 4 * THREADS + thread < J // 4 else FLOAT(0)
            total += held[m]
        for n in range(PIECES):
            at = min(r + 1, r1 - 1) * J + 4 * min(n * THREADS + thread, J // 4 - 1)
            m = n * 4
            ahead[m], ahead[m + 1], ahead[m + 2], ahead[m + 3] = load_four(SOURCE, at, VECTOR)
        distance = 16
        while distance > 0:
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
            distance >>= 1
        if lane == 0:
            sums[warp] = total
        # Also without a mean: the squares of the row before are read before new ones are written.
        cuda.syncthreads()
        if CENTRED:
            total = FLOAT(0)
            for w in range(THREADS // 32):
                total += sums[w]
            mean = total / FLOAT(J)
            for m in range(PIECES * 4):
                held[m] = held[m] - mean if m // 4 * THREADS + thread < J // 4 else FLOAT(0)
        square = FLOAT(0)
        for m in range(PIECES * 4):
            square += held[m] * held[m]
        distance = 16
        while distance > 0:
            square += cuda.shfl_xor_sync(0xFFFFFFFF, square, distance)
            distance >>= 1
        if lane == 0:
            squares[warp] = square
        cuda.syncthreads()
        square = FLOAT(0)
        for w in range(THREADS // 32):
            square += squares[w]
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for n in range(PIECES):
            m = n * 4
            j = 4 * (n * THREADS + thread)
            if j < J:
                if STORED:
                    store_four(
                        TARGET, r * J + j, held[m] * factor, held[m + 1] * factor,
                        held[m + 2] * factor, held[m + 3] * factor, VECTOR,
                    )  # fmt: skip
                else:
                    for e in range(4):
                        STORE(OPERANDS, r, j + e, held[m + e] * factor)


def layer_norm_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    row = cuda.local.array(HELD, FLOAT)
    for r in range(r0 + warp, r1, THREADS // 32):
        total = FLOAT(0)
        for n in range(HELD):
            j = n * 32 + lane
            row[n] = LOAD(OPERANDS, r, j) if j < J else FLOAT(0)
            total += row[n]
        if CENTRED:
            distance = 16
            while distance > 0:
                total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
                distance >>= 1
            mean = total / FLOAT(J)
            for n in range(HELD):
                row[n] = row[n] - mean if n * 32 + lane < J else FLOAT(0)
        square = FLOAT(0)
        for n in range(HELD):
            square += row[n] * row[n]
        distance = 16
        while distance > 0:
            square += cuda.shfl_xor_sync(0xFFFFFFFF, square, distance)
            distance >>= 1
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for n in range(HELD):
            j = n * 32 + lane
            if j < J:
                STORE(OPERANDS, r, j, row[n] * factor)


def layer_norm_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    sums = shared_of(FLOAT(0), scratch)
    squares = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    row = cuda.local.array(HELD, FLOAT)
    for r in range(r0, r1):
        total = FLOAT(0)
        for n in range(HELD):
            j = n * THREADS + thread
            row[n] = LOAD(OPERANDS, r, j) if j < J else FLOAT(0)
            total += row[n]
        distance = 16
        while distance > 0:
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
            distance >>= 1
        if lane == 0:
            sums[warp] = total
        # Also without a mean: the squares of the row before are read before new ones are written.
        cuda.syncthreads()
        if CENTRED:
            total = FLOAT(0)
            for w in range(THREADS // 32):
                total += sums[w]
            mean = total / FLOAT(J)
            for n in range(HELD):
                row[n] = row[n] - mean if n * THREADS + thread < J else FLOAT(0)
        square = FLOAT(0)
        for n in range(HELD):
            square += row[n] * row[n]
        distance = 16
        while distance > 0:
            square += cuda.shfl_xor_sync(0xFFFFFFFF, square, distance)
            distance >>= 1
        if lane == 0:
            squares[warp] = square
        cuda.syncthreads()
        square = FLOAT(0)
        for w in range(THREADS // 32):
            square += squares[w]
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for n in range(HELD):
            j = n * THREADS + thread
            if j < J:
                STORE(OPERANDS, r, j, row[n] * factor)


def layer_norm_long(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    sums = shared_of(FLOAT(0), scratch)
    squares = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    for r in range(r0, r1):
        mean = FLOAT(0)
        if CENTRED:
            total = FLOAT(0)
            for j in range(thread, J, THREADS):
                total += LOAD(OPERANDS, r, j)
            distance = 16
            while distance > 0:
                total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
                distance >>= 1
            if lane == 0:
                sums[warp] = total
        # Also without a mean: the squares of the row before are read before new ones are written.
        cuda.syncthreads()
        if CENTRED:
            total = FLOAT(0)
            for w in range(THREADS // 32):
                total += sums[w]
            mean = total / FLOAT(J)
        square = FLOAT(0)
        for j in range(thread, J, THREADS):
            x = LOAD(OPERANDS, r, j) - mean
            square += x * x
        distance = 16
        while distance > 0:
            square += cuda.shfl_xor_sync(0xFFFFFFFF, square, distance)
            distance >>= 1
        if lane == 0:
            squares[warp] = square
        cuda.syncthreads()
        square = FLOAT(0)
        for w in range(THREADS // 32):
            square += squares[w]
        factor = FLOAT(1) / math.sqrt(square / FLOAT(J) + EPSILON)
        for j in range(thread, J, THREADS):
            STORE(OPERANDS, r, j, (LOAD(OPERANDS, r, j) - mean) * factor)


_MOST_HELD = 32
"""Elements of a row that a thread keeps in registers."""
_SHARED = 2 * 8 * (BLOCK // 32)


def _held(lanes: int) -> Callable[[Root], Parameters]:
    """HELD: elements of a row that a thread keeps."""
    return lambda root: {"HELD": math.ceil(root.parallel[-1] / lanes)}


def _fits(lanes: int) -> Callable[[Root], bool]:
    return lambda root: root.parallel[-1] <= lanes * _MOST_HELD


def _in_memory(root: Root) -> bool:
    return in_memory(root) is not None


def _fours_work(part: Part) -> Work:
    """Four elements are read at once, and the next ones come meanwhile."""
    each = part.loads * 0.25 + work(scalar=3) + part.store
    return each * part.elements + work(divide=3) * part.rows


def _work(part: Part, rounds: float, lanes: int, barriers: int, sweeps: int) -> Work:
    """`sweeps` readings of a row by `lanes` lanes, `rounds` times, and two sums in registers."""
    chain = (sweeps + 2) * math.ceil(part.width / lanes)
    waits = work(chain=chain, shuffle=10, barrier=barriers) * rounds
    each = part.loads * sweeps + work(scalar=3) + part.store
    return waits + each * part.elements + work(divide=3) * part.rows


def _warp_work(part: Part) -> Work:
    return _work(part, part.rounds(part.rows, part.threads // 32), 32, 0, 1)


def _block_work(part: Part) -> Work:
    return _work(part, part.rows, part.threads, 2, 1)


def _long_work(part: Part) -> Work:
    return _work(part, part.rows, part.threads, 2, 3)


RKERNELS = [
    RKernel(
        "layer_norm",
        "fours",
        "cuda",
        __name__,
        "layer_norm_fours",
        legal=in_fours(32, _in_memory),
        work=lambda part: warp_waits(part) + _fours_work(part),
        parameters=warp_pieces,
        reassociates=True,
        vectors=("SOURCE", "TARGET"),
    ),
    RKernel(
        "layer_norm",
        "fours_block",
        "cuda",
        __name__,
        "layer_norm_fours_block",
        legal=in_fours_of_a_block(_in_memory),
        work=lambda part: block_waits(part) + _fours_work(part),
        parameters=block_pieces,
        reassociates=True,
        vectors=("SOURCE", "TARGET"),
        scratch_bytes=_SHARED,
        threads=BLOCK,
    ),
    RKernel(
        "layer_norm",
        "warp",
        "cuda",
        __name__,
        "layer_norm_warp",
        legal=_fits(32),
        work=_warp_work,
        parameters=_held(32),
        reassociates=True,
    ),
    RKernel(
        "layer_norm",
        "block",
        "cuda",
        __name__,
        "layer_norm_block",
        legal=lambda root: root.parallel[-1] >= BLOCK and _fits(BLOCK)(root),
        work=_block_work,
        parameters=_held(BLOCK),
        reassociates=True,
        scratch_bytes=_SHARED,
        threads=BLOCK,
    ),
    RKernel(
        "layer_norm",
        "long",
        "cuda",
        __name__,
        "layer_norm_long",
        legal=lambda root: not _fits(BLOCK)(root),
        work=_long_work,
        reassociates=True,
        scratch_bytes=_SHARED,
        threads=BLOCK,
    ),
]
