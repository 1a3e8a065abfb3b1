"""Matrix products of few terms in float64: all terms of a column stay in shared memory.

A block keeps the columns of B that its warps compute, and goes down the rows of A, some at a time: what comes
next is in registers while the rows before are multiplied. ACROSS warps lie side by side, a lane has TN
columns 32 apart, so that a warp stores whole lines, of TM rows, whose terms it reads for all lanes at once.
`BY_K` says along which index neighbours load B. Products of many terms have no room for this; of float32
other rKernels are as fast.
"""

import math

from xdsl.dialects.builtin import f64

from irkit.dialects.roperator_root import Root, gemm_layout
from irkit.dialects.types import tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

BLOCK = 256
_TM, _TN = 8, 2
_MOST_TERMS, _LEAST_COLUMNS, _MOST_ACROSS = 32, 16, 4


def _few_terms(layout: str):
    """Legal for a B that is contiguous along j ("kj") or along k ("jk")."""

    def legal(root: Root) -> bool:
        if gemm_layout(root) != layout or root.value is None:
            return False
        few = root.reduction[0] <= _MOST_TERMS and root.parallel[-1] >= _LEAST_COLUMNS
        return few and tensor_type(root.value).element_type == f64

    return legal


def _across(root: Root) -> int:
    """Warps side by side: a power of two, no more than there are columns for."""
    wanted = math.ceil(root.parallel[-1] / (32 * _TN))
    return min(_MOST_ACROSS, 1 << (wanted - 1).bit_length())


def _parameters(layout: str):
    by_k = int(layout == "jk")
    return lambda root: {"ACROSS": _across(root), "TM": _TM, "TN": _TN, "BY_K": by_k}


def _rows(across: int) -> int:
    """Rows that a block computes at once."""
    return BLOCK // 32 // across * _TM


def _scratch(root: Root, parameters: Parameters) -> int:
    """The block's columns, and rows, padded by four against bank conflicts."""
    across = parameters["ACROSS"]
    return 8 * root.reduction[0] * (across * 32 * _TN + _rows(across) + 4)


def _work(part: Part) -> Work:
    """Whole tiles are computed, each of all terms; a barrier on either side of what is staged."""
    across = _across(part.root)
    high, wide = _rows(across), across * 32 * _TN
    tiles = math.ceil(part.rows / high) * math.ceil(part.width / wide)
    sums = tiles * high * wide * part.terms * part.lanes
    return work(step=tiles, fma=sums) + part.store * part.elements


def gemm_terms(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    staged = shared_of(FLOAT(0), scratch)
    warp, lane = divide(thread, 32)
    down, beside = divide(warp, ACROSS)
    acc = cuda.local.array((TM, TN), FLOAT)
    a = cuda.local.array(TM, FLOAT)
    b = cuda.local.array(TN, FLOAT)
    following = cuda.local.array((THREADS // 32 // ACROSS * TM * K + THREADS - 1) // THREADS, FLOAT)
    high = THREADS // 32 // ACROSS * TM
    wide = ACROSS * 32 * TN
    at = K * wide
    for j in range(j0, j1, wide):
        cuda.syncthreads()
        element = thread
        while element < K * wide:
            if BY_K:
                n, k = divide(element, K)
            else:
                k, n = divide(element, wide)
            value = FLOAT(0)
            if j + n < j1:
                value = LOAD_B(OPERANDS, k, j + n)
            staged[k * wide + n] = value
            element += THREADS
        r = r0 - high
        while r < r1:
            # Fetch the rows from r + high on, and meanwhile multiply those staged before.
            for i in range((THREADS // 32 // ACROSS * TM * K + THREADS - 1) // THREADS):
                m, k = divide(thread + i * THREADS, K)
                following[i] = FLOAT(0)
                if m < high and r + high + m < r1:
                    following[i] = LOAD_A(OPERANDS, r + high + m, k)
            if r >= r0:
                for m in range(TM):
                    for n in range(TN):
                        acc[m, n] = FLOAT(0)
                for k in range(K):
                    for m in range(TM // 4):
                        row = at + k * (high + 4) + down * TM + 4 * m
                        a[4 * m], a[4 * m + 1], a[4 * m + 2], a[4 * m + 3] = load4(staged, row)
                    for n in range(TN):
                        b[n] = staged[k * wide + (beside * TN + n) * 32 + lane]
                    for m in range(TM):
                        for n in range(TN):
                            acc[m, n] += a[m] * b[n]
                for m in range(TM):
                    for n in range(TN):
                        row = r + down * TM + m
                        column = j + (beside * TN + n) * 32 + lane
                        if row < r1 and column < j1:
                            STORE(OPERANDS, row, column, INIT(OPERANDS, row, column) + acc[m, n])
            r += high
            # Whoever still multiplies reads what is staged; behind the last rows nothing is.
            if r < r1:
                cuda.syncthreads()
                for i in range((THREADS // 32 // ACROSS * TM * K + THREADS - 1) // THREADS):
                    m, k = divide(thread + i * THREADS, K)
                    if m < high:
                        staged[at + k * (high + 4) + m] = following[i]
                cuda.syncthreads()


RKERNELS = [
    RKernel(
        "gemm",
        f"terms_{layout}",
        "cuda",
        __name__,
        "gemm_terms",
        legal=_few_terms(layout),
        work=_work,
        reassociates=True,
        scratch_bytes=_scratch,
        threads=BLOCK,
        parameters=_parameters(layout),
        rows_at_once=64,
    )
    for layout in ("kj", "jk")
]
