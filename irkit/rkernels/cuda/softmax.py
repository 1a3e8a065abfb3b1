"""Softmax over the last dimension, a row per warp or per block; RANGE must give whole rows."""

from irkit.rkernels.rkernel import RKernel


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


RKERNELS = [
    RKernel(
        "softmax",
        "warp",
        "cuda",
        __name__,
        "softmax_warp",
        efficiency=0.02,
        overhead_ns=600.0,
        reassociates=True,
    ),
    RKernel(
        "softmax",
        "block",
        "cuda",
        __name__,
        "softmax_block",
        legal=lambda root: root.parallel[-1] >= 1024,
        efficiency=0.04,
        overhead_ns=1200.0,
        reassociates=True,
        scratch_bytes=2 * 8 * (256 // 32),
        threads=256,
    ),
]
