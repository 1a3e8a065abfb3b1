"""Contractions and convolutions as matrix products on tensor cores, by `mma.sync`.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], as in `product.py`, where both operands lie in memory. A
block computes BM x BN sums, each of its warps WM x WN. Tiles of BK terms are copied to shared memory
asynchronously, STAGES - 1 ahead of the products; windows and padding are resolved where a copy starts, so no
window is ever written out.

KIND says what the tensor cores multiply (`irkit.runtime.intrinsics.cuda_mma`). SPLIT gives float32's own
precision; where parts overflow, cancel to NaN or are too small to be kept, the element is summed once more
without them, so infinities, NaN, the largest and the least values come out as the plain sum has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.product_memory import run_of_b
from irkit.dialects.products import as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.binding.runs import in_fours
from irkit.rkernels.cuda.product import fits, product_of, run_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256
SPLIT, TF32, BF16, F16, SCALED_PARTS = range(5)
KINDS = {
    Precision.FLOAT32: SPLIT,
    Precision.TF32: TF32,
    Precision.BF16: BF16,
    Precision.F16: F16,
}
# What a multiply-add takes, in those of TF32: three products of parts, or half the width.
EFFORT = {SPLIT: 3.0, TF32: 1.0, BF16: 0.5, F16: 0.5}
# The same where a warp's sums leave few registers for parts.
_SUMS_AT_EASE, _CROWDED = 1024, 1.25
# What a word of a fragment takes that is rounded to TF32, in those that are read or split.
ROUNDED = 1.75


def product_mma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp_y, warp_x = divide(warp, BN // WN)
    staged = shared_of(FLOAT(0), scratch)
    a_m, a_k = divide(thread * (1 + 3 * VECTOR * FOURS_A), BK)
    b_n, b_k = divide(thread * (1 + 3 * VECTOR * FOURS_B), BK)
    b_t, b_c = divide(thread * (1 + 3 * VECTOR * FOURS_B), BN)
    left = warp_y * WM * (BK + 4)
    right = BM * (BK + 4) + warp_x * WN * (1 + BY_K * (BK + 3))
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
                    sums = zeros_like(staged, WM * WN // 32)
                    for turn in range((K + BK - 1) // BK):
                        await_copies(STAGES - 2)
                        cuda.syncthreads()
                        if KIND == 0:
                            least, most = seen(turn, least, most)
                        copies(turn + STAGES - 1)
                        base = (turn % STAGES) * STAGE
                        sums = mma_sums(
                            sums, staged, base + left, base + right, lane,
                            BK + 4, BN + 8 + BY_K * (BK - BN - 4), WM, WN, BK, BY_K, KIND,
                        )  # fmt: skip
                    await_copies(0)
                    # The low part of a factor below 2^-113 loses up to 2^-136. Sums of K of them times
                    # factors up to 2^20 are off by less than a unit in the last place from K 2^-92 on.
                    small = cuda.syncthreads_or(int32(least < uint32(14 << 24)))
                    large = cuda.syncthreads_or(int32(most > uint32(147 << 24)))
                    unsure = FLOAT(0)
                    if small:
                        unsure = FLOAT(math.inf) if large else FLOAT(K) * FLOAT(2.02e-28)
                    anew = 0
                    if KIND == 0:
                        anew = 2 * cuda.syncthreads_or(any_unsure(sums, unsure))
                    if TRANSPOSED:
                        mma_store_across(
                            staged, warp_x * WN * (BM + 4) + warp_y * WM, BM + 4, sums, WN, lane
                        )  # fmt: skip
                    else:
                        mma_store(
                            staged, (warp_y * WM) * (BN + 8) + warp_x * WN, BN + 8, sums, WN, lane
                        )  # fmt: skip
                    cuda.syncthreads()

                    LEAVE(
                        OPERANDS, staged, 0, (thread, THREADS), (BM, BN), (b, lead, m, c), (m1, c0, c1),
                        VECTOR, anew, unsure,
                    )  # fmt: skip
                    cuda.syncthreads()


TILES: dict[str, Mapping[str, int]] = {
    "128x128": {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "STAGES": 4},
    "128x64": {"BM": 128, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "STAGES": 4},
    "64x128": {"BM": 64, "BN": 128, "BK": 32, "WM": 32, "WN": 32, "STAGES": 4},
    "64x64": {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 16, "STAGES": 4},
    "64x32": {"BM": 64, "BN": 32, "BK": 64, "WM": 16, "WN": 16, "STAGES": 3},
    "32x64": {"BM": 32, "BN": 64, "BK": 64, "WM": 16, "WN": 16, "STAGES": 3},
    "32x32": {"BM": 32, "BN": 32, "BK": 64, "WM": 16, "WN": 8, "STAGES": 4},
}


def legal(root: Root) -> bool:
    """float32 unless plain products are asked for, both operands in memory, sizes that are known and fit 32
    bits, more than a few rows."""
    if DYNAMIC in root.parallel:
        return False
    product = as_product(root)
    if product is None or not fits(product) or run_of_b(product) is None:
        return False
    if precision_of(root.op) not in KINDS:
        return False
    element = tensor_type(product.op.results[0]).element_type
    columns = product.extent((*product.lead, *product.columns))
    return isinstance(element, Float32Type) and product.extent(product.m) >= 8 and columns >= 8


def stage(root: Root, tile: Mapping[str, int]) -> int:
    """Elements of a stage: a tile of A, row by row, and one of B, by columns or terms as it lies."""
    run = run_of(root)
    by_k = run is not None and run.by_k
    of_b = tile["BN"] * (tile["BK"] + 4) if by_k else tile["BK"] * (tile["BN"] + 8)
    return tile["BM"] * (tile["BK"] + 4) + of_b


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    fours = int(product_of(root).extent(product_of(root).k) % 4 == 0)
    return {
        "KIND": KINDS[precision_of(root.op)],
        **tile,
        "STAGE": stage(root, tile),
        "FOURS_A": fours,
    }


def scratch(root: Root, tile: Parameters) -> int:
    """All stages, or all sums."""
    return 4 * max(tile["STAGES"] * tile["STAGE"], tile["BM"] * (tile["BN"] + 8))


def tiling(tile: Mapping[str, int], root: Root) -> Tiling:
    """Where fours of columns are read, a tile starts at a multiple of four."""
    run = run_of(root)
    in_fours = run is not None and run.fours and not run.by_k
    return Tiling(tile["BM"], tile["BN"], column_unit=4 if in_fours else 1)


def tiles(tile: Mapping[str, int], part: Part) -> float:
    """Tiles of the largest part."""
    return tiling(tile, part.root).of_part(part)


def ends(tile: Mapping[str, int], part: Part, count: float) -> Work:
    """What sums take that leave by way of shared memory: less where four are written at once, and none is
    looked at before."""
    area, product = tile["BM"] * tile["BN"], product_of(part.root)
    element = tensor_type(product.op.inputs[product.a]).element_type
    of_parts = precision_of(part.root.op) is Precision.FLOAT32 and isinstance(element, Float32Type)
    if of_parts or not in_fours(product, part.grid):
        return work(tile=count * (1 + area / 4096))
    return work(tile=count * (1 + area / 12288))


def computed(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Fragments read and multiplied by the tensor cores, behind copies that overlap with them."""

    def counted(part: Part) -> Work:
        count, run = tiles(tile, part), run_of(part.root)
        stages = count * math.ceil(part.terms / tile["BK"])
        warps = tile["BM"] * tile["BN"] / (tile["WM"] * tile["WN"])
        kind = KINDS[precision_of(part.root.op)]
        fragments = stages * warps * (tile["WM"] + tile["WN"]) * tile["BK"]
        if kind == TF32 and run is not None and run.by_k:
            fragments *= ROUNDED
        effort = EFFORT[kind]
        if kind == SPLIT and tile["WM"] * tile["WN"] > _SUMS_AT_EASE:
            effort *= _CROWDED
        products = effort * stages * tile["BM"] * tile["BN"] * tile["BK"]
        of_a = 0 if part.terms % 4 == 0 else tile["BM"]
        of_b = 0 if run is not None and run.fours else tile["BN"]
        copied = work(stage=stages, pack=stages * tile["BK"] * (of_a + of_b))
        multiplied = work(fragment=fragments, mma=products)
        return ends(tile, part, count) + copied + multiplied

    return counted


def stored(counted: Callable[[Part], Work]) -> Callable[[Part], Work]:
    """What is counted, and every sum that is stored."""
    return lambda part: counted(part) + part.store * part.elements


RKERNELS = [
    RKernel(
        "product",
        f"mma{name}",
        "cuda",
        __name__,
        "product_mma",
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
