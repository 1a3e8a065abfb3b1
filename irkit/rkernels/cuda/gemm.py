"""Matrix products through shared memory: a BM x BN tile of the result, BK terms at a time.

Each thread holds TM x TN results; (BM / TM) * (BN / TN) must not exceed THREADS (further threads only
help to stage). TM and TN are multiples of 4 in `gemm_tile64`. Two buffers: while one is multiplied, the next
terms are already in registers. `BY_K` says along which index neighbours load B (1: B is transposed in
memory). `gemm_tile32` has a small tile for matrices of few rows and for company on the device.
"""

import math

from irkit.dialects.roperator_root import Root, gemm_layout
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def _scratch(root: Root, parameters: Parameters) -> int:
    """Two buffers of both tiles, with rows padded by four against bank conflicts."""
    elements = 2 * parameters["BK"] * (parameters["BM"] + parameters["BN"] + 8)
    assert root.value is not None
    return elements * numpy_dtype(tensor_type(root.value).element_type).itemsize


def _layout(layout: str):
    """Legal for a B that is contiguous along j ("kj") or along k ("jk")."""
    return lambda root: gemm_layout(root) == layout


def gemm_tile64(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    staged = shared_of(FLOAT(0), scratch)
    acc = cuda.local.array((TM, TN), FLOAT)
    a = cuda.local.array(TM, FLOAT)
    b = cuda.local.array(TN, FLOAT)
    next_a = cuda.local.array((BM * BK + THREADS - 1) // THREADS, FLOAT)
    next_b = cuda.local.array((BN * BK + THREADS - 1) // THREADS, FLOAT)
    ty, tx = divide(thread, BN // TN)
    works = ty < BM // TM
    down, _ = divide(r1 - r0 + BM - 1, BM)
    across, _ = divide(j1 - j0 + BN - 1, BN)
    for tile in range(down * across):
        y, x = divide(tile, across)
        r = r0 + y * BM
        j = j0 + x * BN
        for m in range(TM):
            for n in range(TN):
                acc[m, n] = FLOAT(0)
        buffer = 0
        k = -BK
        while k < K:
            # Fetch the terms from k + BK on, and meanwhile multiply those staged before.
            for i in range((BM * BK + THREADS - 1) // THREADS):
                m, kk = divide(thread + i * THREADS, BK)
                next_a[i] = FLOAT(0)
                if m < BM and r + m < r1 and k + BK + kk < K:
                    next_a[i] = LOAD_A(OPERANDS, r + m, k + BK + kk)
            for i in range((BN * BK + THREADS - 1) // THREADS):
                if BY_K:
                    n, kk = divide(thread + i * THREADS, BK)
                else:
                    kk, n = divide(thread + i * THREADS, BN)
                next_b[i] = FLOAT(0)
                if n < BN and kk < BK and j + n < j1 and k + BK + kk < K:
                    next_b[i] = LOAD_B(OPERANDS, k + BK + kk, j + n)
            if k >= 0 and works:
                base = (buffer ^ 1) * (BK * (BM + BN + 8))
                for kk in range(BK):
                    for m in range(TM // 4):
                        row = base + kk * (BM + 4) + ty * TM + m * 4
                        a[4 * m], a[4 * m + 1], a[4 * m + 2], a[4 * m + 3] = load4(staged, row)
                    for n in range(TN // 4):
                        column = base + BK * (BM + 4) + kk * (BN + 4) + tx * TN + n * 4
                        b[4 * n], b[4 * n + 1], b[4 * n + 2], b[4 * n + 3] = load4(staged, column)
                    for m in range(TM):
                        for n in range(TN):
                            acc[m, n] += a[m] * b[n]
            base = buffer * (BK * (BM + BN + 8))
            for i in range((BM * BK + THREADS - 1) // THREADS):
                m, kk = divide(thread + i * THREADS, BK)
                if m < BM:
                    staged[base + kk * (BM + 4) + m] = next_a[i]
            for i in range((BN * BK + THREADS - 1) // THREADS):
                if BY_K:
                    n, kk = divide(thread + i * THREADS, BK)
                else:
                    kk, n = divide(thread + i * THREADS, BN)
                if n < BN and kk < BK:
                    staged[base + BK * (BM + 4) + kk * (BN + 4) + n] = next_b[i]
            buffer ^= 1
            k += BK
            cuda.syncthreads()
        if works:
            for m in range(TM):
                for n in range(TN):
                    if r + ty * TM + m < r1 and j + tx * TN + n < j1:
                        first = INIT(OPERANDS, r + ty * TM + m, j + tx * TN + n)
                        STORE(OPERANDS, r + ty * TM + m, j + tx * TN + n, first + acc[m, n])


def gemm_tile32(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    staged = shared_of(FLOAT(0), scratch)
    acc = cuda.local.array((TM, TN), FLOAT)
    ty, tx = divide(thread, BN // TN)
    works = ty < BM // TM
    down, _ = divide(r1 - r0 + BM - 1, BM)
    across, _ = divide(j1 - j0 + BN - 1, BN)
    for tile in range(down * across):
        y, x = divide(tile, across)
        r = r0 + y * BM
        j = j0 + x * BN
        for m in range(TM):
            for n in range(TN):
                acc[m, n] = FLOAT(0)
        base = 0
        for k in range(0, K, BK):
            element = thread
            while element < BM * BK:
                m, kk = divide(element, BK)
                value = FLOAT(0)
                if r + m < r1 and k + kk < K:
                    value = LOAD_A(OPERANDS, r + m, k + kk)
                staged[base + kk * (BM + 4) + m] = value
                element += THREADS
            element = thread
            while element < BN * BK:
                if BY_K:
                    n, kk = divide(element, BK)
                else:
                    kk, n = divide(element, BN)
                value = FLOAT(0)
                if j + n < j1 and k + kk < K:
                    value = LOAD_B(OPERANDS, k + kk, j + n)
                staged[base + BK * (BM + 4) + kk * (BN + 4) + n] = value
                element += THREADS
            cuda.syncthreads()
            if works:
                for kk in range(BK):
                    for m in range(TM):
                        for n in range(TN):
                            left = staged[base + kk * (BM + 4) + ty + m * (BM // TM)]
                            column = tx + n * (BN // TN)
                            right = staged[base + BK * (BM + 4) + kk * (BN + 4) + column]
                            acc[m, n] += left * right
            # Two buffers: the next terms go elsewhere, so one barrier a step is enough.
            base = BK * (BM + BN + 8) - base
        cuda.syncthreads()
        if works:
            for m in range(TM):
                for n in range(TN):
                    row = r + ty + m * (BM // TM)
                    column = j + tx + n * (BN // TN)
                    if row < r1 and column < j1:
                        STORE(OPERANDS, row, column, INIT(OPERANDS, row, column) + acc[m, n])


def _work(tile: Parameters, reads: float):
    """Whole tiles are computed, BK terms at a time; `reads` of shared memory for each product."""

    def counted(part: Part) -> Work:
        tiles = math.ceil(part.rows / tile["BM"]) * math.ceil(part.width / tile["BN"])
        steps = tiles * math.ceil(part.terms / tile["BK"])
        sums = steps * tile["BM"] * tile["BN"] * tile["BK"] * part.lanes
        return work(tile=tiles, step=steps, fma=reads * sums) + part.store * part.elements

    return counted


_TILE64 = {"BM": 64, "BN": 64, "BK": 16, "TM": 4, "TN": 4}
_TILE32 = {"BM": 32, "BN": 32, "BK": 32, "TM": 2, "TN": 2}
RKERNELS = [
    RKernel(
        "gemm",
        f"{tile}_{layout}",
        "cuda",
        __name__,
        f"gemm_{tile}",
        legal=_layout(layout),
        # Columns that run along k are turned on their way: by measurement.
        work=_work(parameters, across if layout == "jk" else reads),
        reassociates=True,
        scratch_bytes=_scratch,
        threads=256,
        parameters={**parameters, "BY_K": int(layout == "jk")},
    )
    for tile, parameters, reads, across in (
        ("tile64", _TILE64, 1.0, 2.4),
        ("tile32", _TILE32, 2.0, 6.5),
    )
    for layout in ("kj", "jk")
]
