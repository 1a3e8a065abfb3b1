"""Softmax over the last dimension, a row per warp or per block; RANGE must give whole rows."""

import math

from irkit.rkernels.families.softmax import exponentials
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def softmax_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    for r in range(r0 + warp, r1, THREADS // 32):
        # A NaN must reach every output: it makes the sum NaN, even if the maximum drops it.
        largest = FLOAT(-math.inf)
        for j in range(lane, J, 32):
            largest = max(largest, LOAD(OPERANDS, r, j))
        distance = 16
        while distance > 0:
            largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, distance))
            distance >>= 1
        total = FLOAT(0)
        for j in range(lane, J, 32):
            total += EXP(LOAD(OPERANDS, r, j) - largest)
        distance = 16
        while distance > 0:
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
            distance >>= 1
        for j in range(lane, J, 32):
            STORE(OPERANDS, r, j, EXP(LOAD(OPERANDS, r, j) - largest) / total)


def softmax_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    maxima = shared_of(FLOAT(0), scratch)
    totals = shared_of(FLOAT(0), scratch + 8 * (THREADS // 32))
    for r in range(r0, r1):
        largest = FLOAT(-math.inf)
        for j in range(thread, J, THREADS):
            largest = max(largest, LOAD(OPERANDS, r, j))
        distance = 16
        while distance > 0:
            largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, distance))
            distance >>= 1
        if lane == 0:
            maxima[warp] = largest
        cuda.syncthreads()
        for w in range(THREADS // 32):
            largest = max(largest, maxima[w])
        total = FLOAT(0)
        for j in range(thread, J, THREADS):
            total += EXP(LOAD(OPERANDS, r, j) - largest)
        distance = 16
        while distance > 0:
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
            distance >>= 1
        if lane == 0:
            totals[warp] = total
        cuda.syncthreads()
        total = FLOAT(0)
        for w in range(THREADS // 32):
            total += totals[w]
        for j in range(thread, J, THREADS):
            STORE(OPERANDS, r, j, EXP(LOAD(OPERANDS, r, j) - largest) / total)


def _work(part: Part, rounds: float, lanes: int, barriers: int) -> Work:
    """Three sweeps of a row by `lanes` lanes, `rounds` times."""
    sweeps = 3 * math.ceil(part.width / lanes)
    waits = work(chain=sweeps, shuffle=10, barrier=barriers) * rounds
    each = part.loads * 3 + work(scalar=3, divide=1) + exponentials(part, 2) + part.store
    return waits + each * part.elements


def _warp_work(part: Part) -> Work:
    return _work(part, part.rounds(part.rows, part.threads // 32), 32, 0)


def _block_work(part: Part) -> Work:
    return _work(part, part.rows, part.threads, 2)


RKERNELS = [
    RKernel(
        "softmax",
        "warp",
        "cuda",
        __name__,
        "softmax_warp",
        work=_warp_work,
        reassociates=True,
    ),
    RKernel(
        "softmax",
        "block",
        "cuda",
        __name__,
        "softmax_block",
        legal=lambda root: root.parallel[-1] >= 1024,
        work=_block_work,
        reassociates=True,
        scratch_bytes=2 * 8 * (256 // 32),
        threads=256,
    ),
]
