"""Number of the first largest element of the last dimension, a row per warp; NaN is larger than all."""

from irkit.rkernels.rkernel import RKernel


def argmax_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    for r in range(r0 + warp, r1, THREADS // 32):
        best = lane if lane < K0 else 0
        value = LOAD(OPERANDS, r, best)
        for k in range(lane + 32, K0, 32):
            candidate = LOAD(OPERANDS, r, k)
            if candidate > value or (candidate != candidate and value == value):
                best = k
                value = candidate
        distance = 16
        while distance > 0:
            k = cuda.shfl_xor_sync(0xFFFFFFFF, best, distance)
            candidate = cuda.shfl_xor_sync(0xFFFFFFFF, value, distance)
            alike = candidate == value or (candidate != candidate and value != value)
            larger = candidate > value or (candidate != candidate and value == value)
            if larger or (alike and k < best):
                best = k
                value = candidate
            distance >>= 1
        if lane == 0:
            STORE(OPERANDS, r, best)


RKERNELS = [
    RKernel(
        "argmax",
        "warp",
        "cuda",
        __name__,
        "argmax_warp",
        efficiency=0.02,
        overhead_ns=400.0,
    ),
]
