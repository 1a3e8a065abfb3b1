"""Matrix-vector products: few x, many rows of weights.

`gemv_rows` gives each row of W to LANES lanes, PASS rows at a time; `gemv_block` splits each row over
the whole block, for few long rows. K0 is walked BLOCK elements at a time, x held in registers.
VECTOR 1 needs operands whose addresses are multiples of 16; with 0 any will do. RESIDENT 1 promises
that W0 is in shared memory. What the epilogue reads of memory is read before the products.
"""

from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.families.row_terms import multiply_adds
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def gemv_rows(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    thread = thread_index()
    group, lane = divide(thread, LANES)
    acc = cuda.local.array(1, FLOAT)
    turn = 0
    for b in range(BATCH):
        for u in range(u0, u1, PASS * (THREADS // LANES)):
            count = min(PASS * (THREADS // LANES), u1 - u)
            known = NOTHING
            if thread < count:
                acc[0] = INIT(OPERANDS, b, u + thread, 0)
                known = FETCH(OPERANDS, b, u + thread)
            # Two buffers in turn: one barrier a pass is enough.
            offset = turn * PASS * (THREADS // LANES) * itemsize(acc)
            results = shared_of(FLOAT(0), scratch + offset)
            sums = zeros_like(W0, PASS)
            starts = row_starts(u + group, THREADS // LANES, u1, K0, PASS)
            for block in range(K0 // BLOCK):
                k = block * BLOCK
                held = lane_load(X0, b * K0 + k, lane, BLOCK, LANES, K0 * VECTOR)
                sums = lane_dots(
                    sums, held, W0, starts, k, lane, BLOCK, LANES, K0 * VECTOR, RESIDENT
                )
            if K0 % BLOCK:
                k = K0 - K0 % BLOCK
                rest = lane_load(X0, b * K0 + k, lane, K0 % BLOCK, LANES, K0 * VECTOR)
                sums = lane_dots(
                    sums, rest, W0, starts, k, lane, K0 % BLOCK, LANES, K0 * VECTOR, RESIDENT
                )
            sums = group_sums(sums, LANES)
            rows_store(results, group, THREADS // LANES, count, sums, lane == 0)
            cuda.syncthreads()
            if thread < count:
                acc[0] += results[thread]
                STORE(OPERANDS, b, u + thread, acc, known)
            turn ^= 1


def gemv_block(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    acc = cuda.local.array(1, FLOAT)
    turn = 0
    for b in range(BATCH):
        for u in range(u0, u1, PASS):
            known = NOTHING
            if thread < min(PASS, u1 - u):
                acc[0] = INIT(OPERANDS, b, u + thread, 0)
                known = FETCH(OPERANDS, b, u + thread)
            partial = shared_of(FLOAT(0), scratch + turn * PASS * (THREADS // 32) * itemsize(acc))
            sums = zeros_like(W0, PASS)
            starts = row_starts(u, 1, u1, K0, PASS)
            for block in range(K0 // BLOCK):
                k = block * BLOCK
                held = lane_load(X0, b * K0 + k, thread, BLOCK, THREADS, K0 * VECTOR)
                sums = lane_dots(
                    sums, held, W0, starts, k, thread, BLOCK, THREADS, K0 * VECTOR, RESIDENT
                )
            if K0 % BLOCK:
                k = K0 - K0 % BLOCK
                rest = lane_load(X0, b * K0 + k, thread, K0 % BLOCK, THREADS, K0 * VECTOR)
                sums = lane_dots(
                    sums, rest, W0, starts, k, thread, K0 % BLOCK, THREADS, K0 * VECTOR, RESIDENT
                )
            sums = group_sums(sums, 32)
            rows_store(partial, warp, THREADS // 32, PASS * (THREADS // 32), sums, lane == 0)
            cuda.syncthreads()
            if thread < min(PASS, u1 - u):
                for w in range(THREADS // 32):
                    acc[0] += partial[thread * (THREADS // 32) + w]
                STORE(OPERANDS, b, u + thread, acc, known)
            turn ^= 1


def few_rows(root: Root) -> bool:
    """One row-wise term over few rows, and never over the batch (its shares are rows)."""
    if len(root.chain) != 1 or root.parallel[0] == DYNAMIC or len(root.parallel) != 2:
        return False
    return root.parallel[0] <= 16 and row_term(root.chain[0]) is not None


def _rows_work(part: Part) -> Work:
    return _work(part, part.rounds(part.width, 2 * (part.threads // 32)))


def _block_work(part: Part) -> Work:
    return _work(part, part.rounds(part.width, 4))


def _work(part: Part, passes: int) -> Work:
    """In each pass some rows of W, whose loads go out one behind another."""
    waits = work(round=1, shuffle=5, barrier=1) * (part.rows * passes)
    return waits + work(dot=multiply_adds(part)) + part.store * part.elements


RKERNELS = [
    RKernel(
        "gemv",
        "rows",
        "cuda",
        __name__,
        "gemv_rows",
        legal=few_rows,
        work=_rows_work,
        scratch_bytes=2 * 2 * (256 // 32) * 8,
        threads=256,
        parameters={"LANES": 32, "PASS": 2, "BLOCK": 512},
        reassociates=True,
        anywhere=True,
        halves=True,
        vectors=("X0", "W0"),
        kept=("W0",),
    ),
    RKernel(
        "gemv",
        "block",
        "cuda",
        __name__,
        "gemv_block",
        legal=lambda root: few_rows(root) and root.reduction[-1] >= 1024,
        work=_block_work,
        scratch_bytes=2 * 4 * (256 // 32) * 8,
        threads=256,
        parameters={"PASS": 4, "BLOCK": 4096},
        reassociates=True,
        anywhere=True,
        halves=True,
        vectors=("X0", "W0"),
        kept=("W0",),
    ),
]
