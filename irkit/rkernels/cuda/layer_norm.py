"""Layer normalisation, a row per warp or per block; RANGE must give whole rows.

Each thread keeps its elements in registers until the statistics of the row are known; of rows too long for
that it reads them anew.
"""

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


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


_BLOCK = 256
_MOST_HELD = 32
"""Elements of a row that a thread keeps in registers."""
_SHARED = 2 * 8 * (_BLOCK // 32)


def _held(lanes: int) -> Callable[[Root], Parameters]:
    """HELD: elements of a row that a thread keeps."""
    return lambda root: {"HELD": math.ceil(root.parallel[-1] / lanes)}


def _fits(lanes: int) -> Callable[[Root], bool]:
    return lambda root: root.parallel[-1] <= lanes * _MOST_HELD


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
        legal=lambda root: root.parallel[-1] >= _BLOCK and _fits(_BLOCK)(root),
        work=_block_work,
        parameters=_held(_BLOCK),
        reassociates=True,
        scratch_bytes=_SHARED,
        threads=_BLOCK,
    ),
    RKernel(
        "layer_norm",
        "long",
        "cuda",
        __name__,
        "layer_norm_long",
        legal=lambda root: not _fits(_BLOCK)(root),
        work=_long_work,
        reassociates=True,
        scratch_bytes=_SHARED,
        threads=_BLOCK,
    ),
]
