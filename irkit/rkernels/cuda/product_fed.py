"""Matrix products of 16-bit floats on tensor cores: four warps copy, four multiply (`wgmma`).

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], as in `product_wgmma_halves.py`, for few rows or
columns: tiles of 64 rows and BN columns, so that all multiprocessors have one. Half of the block copies tiles
of BK terms to the rows that `wgmma` reads, STAGES ahead, by addresses that are reckoned once; the other half
is one warp group, which multiplies what has arrived. The halves wait for stages alone, not for each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from irkit.dialects.product_memory import pitch_of_runs, run_of_b
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda import product_wgmma_halves as halves
from irkit.rkernels.cuda.product import product_of
from irkit.rkernels.cuda.product_mma import THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_wgmma import ALIGNMENT
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part, Work, work


def product_fed(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    staged = shared_of(float32(0), scratch)
    # First the barriers, two words each: of stages that are there, then of stages that were read.
    packs = aligned_place(staged, 4 * STAGES)
    left, right = packs, packs + 64 * BK // 2
    turns = (K + BK - 1) // BK
    if thread == 0:
        for stage in range(STAGES):
            open_barrier(staged, 2 * stage, THREADS // 2)
            open_barrier(staged, 2 * (STAGES + stage), 4)
    publish_barriers()
    cuda.syncthreads()
    # Of the copying half: a thread has the same 16 bytes of every 16th row.
    own = thread - THREADS // 2
    a_row, a_chunk = divide(own, 8)
    b_row, b_chunk = divide(own, 8)
    if not BY_K:
        b_row, b_chunk = divide(own, BN // 8)

    # The stage behind another, and the parity of what it waits for.
    def following(stage, parity):
        return (0, 1 - parity) if stage == STAGES - 1 else (stage + 1, parity)

    # Products of what has arrived in a stage, begun: behind `given` sums, or `fresh` ones.
    def begun(stage, parity, given, fresh):
        await_phase(staged, 2 * stage, parity)
        publish_tiles()
        tile = stage * STAGE
        return group_products(
            given, staged, tile + left, tile + right, BN, BK, 32,
            64 * 32, (BN * BY_K + BK * (1 - BY_K)) * 32, BY_K, KIND, fresh, 0,
        )  # fmt: skip

    def read(stage):
        cuda.syncwarp()
        if lane == 0:
            arrive(staged, 2 * (STAGES + stage))

    filled, stage, parity = 0, 0, 0
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0, m1, 64):
                # Eights of columns start at multiples of eight, whatever the grid.
                for c in range(c0 - c0 % (8 - 7 * BY_K), c1, BN):
                    sums = zeros_like(staged, BN // 2)
                    if VECTOR and group == 1:
                        from_a = fixed((b * M + m + a_row) * K + a_chunk * 8)
                        if BY_K:
                            column = COLUMN(b, lead, min(c + b_row, c1 - 1))
                            from_b = fixed(int64(AT(column, STEP(0))) + b_chunk * 8)
                        else:
                            column = COLUMN(b, lead, min(c + b_chunk * 8, (c1 - 1) - (c1 - 1) % 8))
                            from_b = fixed(int64(AT(column, STEP(0))) + b_row * PITCH)
                        for turn in range(turns):
                            tile = packs + stage * STAGE
                            if filled >= STAGES:
                                await_phase(staged, 2 * (STAGES + stage), 1 - parity)
                            # Beyond the last terms and rows zeros are copied.
                            k = turn * BK
                            for plane in range(BK // 64):
                                feed_rows(
                                    staged, tile + plane * (64 * 32), a_row, a_chunk,
                                    A, from_a + k + plane * 64, K, 16, 4,
                                    (m1 - m) - a_row if k + plane * 64 + a_chunk * 8 < K else 0,
                                )  # fmt: skip
                            if BY_K:
                                for plane in range(BK // 64):
                                    feed_rows(
                                        staged, tile + 64 * BK // 2 + plane * (BN * 32), b_row, b_chunk,
                                        B, from_b + k + plane * 64, PITCH, 16, BN // 16,
                                        (c1 - c) - b_row if k + plane * 64 + b_chunk * 8 < K else 0,
                                    )  # fmt: skip
                            else:
                                feed_rows(
                                    staged, tile + 64 * BK // 2 + b_chunk // 8 * (BK * 32), b_row,
                                    b_chunk % 8, B, from_b + k * PITCH, PITCH, 1024 // BN,
                                    BK * BN // 1024, (K - k) - b_row,
                                )  # fmt: skip
                            arrive_behind_copies(staged, 2 * stage)
                            filled += 1
                            stage, parity = following(stage, parity)
                    if VECTOR and group == 0:
                        for turn in range(0, turns - 1, 2):
                            first = begun(stage, parity, sums, FRESH)
                            one = stage
                            stage, parity = following(stage, parity)
                            if FRESH:
                                # While the sums of one stage are added, the other's are computed.
                                second = begun(stage, parity, sums, 1)
                                sums = group_added(sums, first, 1, 1)
                            else:
                                second = begun(stage, parity, first, 0)
                                await_products(1)
                            read(one)
                            sums = group_added(sums, second, FRESH, 0)
                            read(stage)
                            stage, parity = following(stage, parity)
                        if (K + BK - 1) // BK % 2:
                            first = begun(stage, parity, sums, FRESH)
                            sums = group_added(sums, first, FRESH, 0)
                            read(stage)
                            stage, parity = following(stage, parity)
                    # The sums leave by way of the stages, which all are read by then.
                    cuda.syncthreads()
                    if group == 0:
                        if TRANSPOSED:
                            mma_store_across(staged, packs + quarter * 16, 64 + 4, sums, BN, lane)
                        else:
                            mma_store(
                                staged, packs + quarter * 16 * (BN + 8), BN + 8, sums, BN, lane
                            )
                    cuda.syncthreads()

                    # An operand that does not start at a multiple of 16 bytes cannot be copied.
                    LEAVE(
                        OPERANDS, staged, packs, (thread, THREADS), (64, BN), (b, lead, m, c), (m1, c0, c1),
                        VECTOR, 1 - VECTOR, FLOAT(0),
                    )  # fmt: skip
                    cuda.syncthreads()
    if thread == 0:
        for stage in range(2 * STAGES):
            close_barrier(staged, 2 * stage)
    cuda.syncthreads()


TILES: dict[str, Mapping[str, int]] = {
    "64x64": {"BN": 64, "BK": 64},
    "64x32": {"BN": 32, "BK": 64},
    "64x64_deep": {"BN": 64, "BK": 128},
    "64x32_deep": {"BN": 32, "BK": 128},
    "64x16_deep": {"BN": 16, "BK": 128},
}
_STAGED_BYTES, _MOST_STAGES = 196 * 1024, 16
"""All stages together, and how many there are at most."""


def _legal(root: Root) -> bool:
    """What `product.wgmma64x32_halves` takes, where a step of k is one distance in B."""
    return halves.legal(halves.TILES["64x32"])(root) and pitch_of_runs(product_of(root)) is not None


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    product, run = product_of(root), run_of_b(product_of(root))
    by_k = run is not None and run.by_k
    # Where columns lie side by side, a row of B has 64 of them, used or not.
    columns = tile["BN"] if by_k else max(tile["BN"], 64)
    stage = (64 + columns) * tile["BK"] // 2
    pitch = pitch_of_runs(product)
    assert pitch is not None
    turns = math.ceil(product.extent(product.k) / tile["BK"])
    stages = max(min(_MOST_STAGES, _STAGED_BYTES // (4 * stage), turns), 2)
    return {**halves.asked(root), "STAGES": stages, **tile, "STAGE": stage, "PITCH": pitch}


def _scratch(root: Root, tile: Parameters) -> int:
    """Barriers, and all stages or all sums behind them."""
    staged = max(tile["STAGES"] * tile["STAGE"], 64 * (tile["BN"] + 8))
    return 4 * (4 * tile["STAGES"] + ALIGNMENT // 4 + staged)


def _tiling(tile: Mapping[str, int], root: Root) -> Tiling:
    return halves.tiling({**tile, "BM": 64}, root)


def _work(tile: Mapping[str, int]):
    """Stages that arrive one after another, behind products that overlap with them."""

    def counted(part: Part) -> Work:
        count = _tiling(tile, part.root).of_part(part)
        stages = count * math.ceil(part.terms / 64)
        products = stages * 64 * tile["BN"] * 64
        waits = stages * halves.by_rows(part, 64, tile["BN"]) / 290
        # Sums leave by way of shared memory.
        ends = work(tile=count * (1 + 64 * tile["BN"] / 4096))
        return ends + work(stage=waits, mma=products * 0.5) + part.store * part.elements

    return counted


RKERNELS = [
    RKernel(
        "product",
        f"fed{name}",
        "cuda",
        __name__,
        "product_fed",
        legal=_legal,
        wgmma=True,
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        halves=True,
        grid=cut_into_tiles(partial(_tiling, tile)),
        work=_work(tile),
    )
    for name, tile in TILES.items()
]
