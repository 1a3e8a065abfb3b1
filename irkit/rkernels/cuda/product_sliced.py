"""Matrix products of few results on tensor cores: the warps of a block share its terms.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], as in `product_mma.py`. A block computes BM x BN sums,
and each of its warps all of them, of its slice of every stage of BK terms (sliced-K in CUTLASS); the warps'
sums meet in shared memory, warp by warp, always in the same order. So a tile can be small, which gives more
vEUs one, and yet has all warps at work: what a long sum of few results waits for is its chain of products.

How copies are staged, and where elements are summed once more without parts, is as in `product_mma.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from irkit.dialects.precision import precision_of
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda.product import run_of
from irkit.rkernels.cuda.product_mma import (
    EFFORT,
    KINDS,
    ROUNDED,
    TF32,
    THREADS_PER_BLOCK,
    legal,
    parameters_of,
    stored,
    tiles,
    tiling,
)
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import cut_into_tiles
from irkit.rkernels.work import Part, Work, work

WARPS = THREADS_PER_BLOCK // 32
_AHEAD = 3
"""Stages on their way at once for which `stage` is the wait."""


def product_sliced(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    staged = shared_of(FLOAT(0), scratch)
    a_m, a_k = divide(thread * (1 + 3 * VECTOR * FOURS_A), BK)
    b_n, b_k = divide(thread * (1 + 3 * VECTOR * FOURS_B), BK)
    b_t, b_c = divide(thread * (1 + 3 * VECTOR * FOURS_B), BN)
    left = warp * (BK // (THREADS // 32))
    right = BM * (BK + 4) + warp * (BK // (THREADS // 32)) * (1 + (1 - BY_K) * (BN + 7))
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0, m1, BM):
                # Fours of columns start at multiples of four, whatever the grid.
                for c in range(c0 - c0 % (1 + 3 * VECTOR * FOURS_B * (1 - BY_K)), c1, BN):
                    last = (c1 - 1) - (c1 - 1) % (1 + 3 * VECTOR * FOURS_B)
                    column = COLUMN(b, lead, min(c + b_c, last))

                    # Beyond the last terms zeros are copied: without a branch, copies start between products.
                    def copies(turn):
                        base = (turn % STAGES) * STAGE
                        k = turn * BK
                        inside = k + a_k < K
                        start = k + a_k if inside else 0
                        for i in range(BM * BK // (THREADS * (1 + 3 * VECTOR * FOURS_A))):
                            y = a_m + i * (THREADS * (1 + 3 * VECTOR * FOURS_A) // BK)
                            copy_async(
                                staged, base + y * (BK + 4) + a_k,
                                A, (b * M + min(m + y, m1 - 1)) * K + start,
                                1 + 3 * VECTOR * FOURS_A, inside,
                            )  # fmt: skip
                        for i in range(BN * BK // (THREADS * (1 + 3 * VECTOR * FOURS_B))):
                            if BY_K:
                                x = b_n + i * (THREADS * (1 + 3 * VECTOR * FOURS_B) // BK)
                                t = b_k
                                place = x * (BK + 4) + t
                                from_b = COLUMN(b, lead, min(c + x, c1 - 1))
                            else:
                                t = b_t + i * (THREADS * (1 + 3 * VECTOR * FOURS_B) // BN)
                                place = t * (BN + 8) + b_c
                                from_b = column
                            step = STEP(min(k + t, K - (1 + 3 * VECTOR * FOURS_B * BY_K)))
                            copy_async(
                                staged, base + BM * (BK + 4) + place,
                                B, AT(from_b, step), 1 + 3 * VECTOR * FOURS_B,
                                (k + t < K) & INSIDE(from_b, step),
                            )  # fmt: skip
                        commit_copies()

                    # Of the words that this thread copied, once a stage.
                    def seen(turn, least, most):
                        base = (turn % STAGES) * STAGE
                        for i in range(BM * BK // (THREADS * (1 + 3 * VECTOR * FOURS_A))):
                            y = a_m + i * (THREADS * (1 + 3 * VECTOR * FOURS_A) // BK)
                            place = base + y * (BK + 4) + a_k
                            least, most = magnitudes(
                                least, most, staged, place, 1 + 3 * VECTOR * FOURS_A
                            )
                        for i in range(BN * BK // (THREADS * (1 + 3 * VECTOR * FOURS_B))):
                            x = b_n + i * (THREADS * (1 + 3 * VECTOR * FOURS_B) // BK)
                            t = b_t + i * (THREADS * (1 + 3 * VECTOR * FOURS_B) // BN)
                            place = x * (BK + 4) + b_k if BY_K else t * (BN + 8) + b_c
                            least, most = magnitudes(
                                least, most,
                                staged, base + BM * (BK + 4) + place, 1 + 3 * VECTOR * FOURS_B,
                            )  # fmt: skip
                        return least, most

                    for turn in range(STAGES - 1):
                        copies(turn)
                    least, most = uint32(0xFFFFFFFF), uint32(0)
                    sums = zeros_like(staged, BM * BN // 32)
                    for turn in range((K + BK - 1) // BK):
                        await_copies(STAGES - 2)
                        cuda.syncthreads()
                        if KIND == 0:
                            least, most = seen(turn, least, most)
                        copies(turn + STAGES - 1)
                        base = (turn % STAGES) * STAGE
                        sums = mma_sums(
                            sums, staged, base + left, base + right, lane,
                            BK + 4, BN + 8 + BY_K * (BK - BN - 4), BM, BN, BK // (THREADS // 32), BY_K, KIND,
                        )  # fmt: skip
                    await_copies(0)
                    # As in `product_mma`: what the low parts of small factors lose.
                    small = cuda.syncthreads_or(int32(least < uint32(14 << 24)))
                    large = cuda.syncthreads_or(int32(most > uint32(147 << 24)))
                    unsure = FLOAT(0)
                    if small:
                        unsure = FLOAT(math.inf) if large else FLOAT(K) * FLOAT(2.02e-28)
                    if TRANSPOSED:
                        mma_store_across(staged, warp * (BM * (BN + 8)), BM + 4, sums, BN, lane)
                    else:
                        mma_store(staged, warp * (BM * (BN + 8)), BN + 8, sums, BN, lane)
                    cuda.syncthreads()
                    # A thread reads what others store of a sum, and is the one that joins it.
                    wrong = int32(0)
                    for i in range(BM * BN // THREADS):
                        if TRANSPOSED:
                            x, y = divide(thread + i * THREADS, BM)
                        else:
                            y, x = divide(thread + i * THREADS, BN)
                        place = x * (BM + 4) + y if TRANSPOSED else y * (BN + 8) + x
                        total = staged[place]
                        for other in range(1, THREADS // 32):
                            total += staged[other * (BM * (BN + 8)) + place]
                        staged[place] = total
                        if KIND == 0 and not (unsure <= abs(total) < math.inf):
                            wrong = int32(1)
                    anew = 2 * cuda.syncthreads_or(wrong)
                    LEAVE(
                        OPERANDS, staged, 0, (thread, THREADS), (BM, BN), (b, lead, m, c), (m1, c0, c1),
                        0, anew, unsure,
                    )  # fmt: skip
                    cuda.syncthreads()


TILES: dict[str, Mapping[str, int]] = {
    "16x16": {"BM": 16, "BN": 16, "BK": 128, "WM": 16, "WN": 16, "STAGES": 4},
    "16x32": {"BM": 16, "BN": 32, "BK": 128, "WM": 16, "WN": 32, "STAGES": 3},
}


def scratch(root: Root, tile: Parameters) -> int:
    """All stages, or the sums of all warps."""
    return 4 * max(tile["STAGES"] * tile["STAGE"], WARPS * tile["BM"] * (tile["BN"] + 8))


def computed(tile: Mapping[str, int]):
    """As of `product_mma`, of warps that read both whole tiles of their terms; and the sums of all warps."""

    def counted(part: Part) -> Work:
        count, run = tiles(tile, part), run_of(part.root)
        stages, area = count * math.ceil(part.terms / tile["BK"]), tile["BM"] * tile["BN"]
        kind = KINDS[precision_of(part.root.op)]
        fragments = stages * (tile["BM"] + tile["BN"]) * tile["BK"]
        if kind == TF32 and run is not None and run.by_k:
            fragments *= ROUNDED
        of_a = 0 if part.terms % 4 == 0 else tile["BM"]
        of_b = 0 if run is not None and run.fours else tile["BN"]
        # A stage is small beside what a multiprocessor can ask for: of fewer on their way each is waited for
        # longer (measured on an H200, weights in the second-level cache or not).
        waits = stages * _AHEAD / (tile["STAGES"] - 1)
        copied = work(stage=waits, pack=stages * tile["BK"] * (of_a + of_b))
        multiplied = work(
            fragment=fragments + count * WARPS * area, mma=EFFORT[kind] * stages * area * tile["BK"]
        )
        ends = work(tile=count * (1 + area / 4096), barrier=2 * count)
        return ends + copied + multiplied

    return counted


RKERNELS = [
    RKernel(
        "product",
        f"sliced{name}",
        "cuda",
        __name__,
        "product_sliced",
        legal=legal,
        reassociates=True,
        scratch_bytes=scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        grid=cut_into_tiles(partial(tiling, tile)),
        work=stored(computed(tile)),
    )
    for name, tile in TILES.items()
]
