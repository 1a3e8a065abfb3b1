"""Contractions and convolutions as matrix products on tensor cores, by warp groups (`wgmma`).

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], as in `product_mma.py`: tiles of BK terms are copied to
shared memory as they are, STAGES ahead. There the threads pack them into the rows that `wgmma` reads, rounded
or split, while the tensor cores multiply the stage before: two warp groups, each 64 rows and WN columns.
Of split terms the first parts' products are summed by themselves (`cuda_wgmma` says why).

Where parts overflow, cancel to NaN or are too small to be kept, the element is summed once more without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from irkit.dialects.precision import precision_of
from irkit.dialects.product_memory import run_of_b
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda import product_mma
from irkit.rkernels.cuda.product import product_of
from irkit.rkernels.cuda.product_mma import SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import cut_into_tiles
from irkit.rkernels.work import Part, Work, work

# A multiply-add of a warp group, in those of one warp in TF32: six products of parts, or one.
_EFFORT = {SPLIT: 2.2, TF32: 0.85}
_SIXTEEN_BITS = 0.44
# What packing a term takes, in fragments' words, and what a stage costs its threads, in barriers.
_PACKING = {SPLIT: (4.0, 8), TF32: (2.6, 4)}
# The same of terms that lie side by side on both sides.
_PACKING_BY_K = {SPLIT: (1.6, 5), TF32: (2.2, 4)}
_ROUNDING = (1.9, 4)


def product_wgmma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    group_y, group_x = divide(group, BN // WN)
    staged = shared_of(FLOAT(0), scratch)
    a_m, a_k = divide(thread * (1 + 3 * VECTOR * FOURS_A), BK)
    b_n, b_k = divide(thread * (1 + 3 * VECTOR * FOURS_B), BK)
    b_t, b_c = divide(thread * (1 + 3 * VECTOR * FOURS_B), BN)
    a_row, a_chunk = divide(thread, BK // TERMS)
    b_row, b_chunk = divide(thread, BK // TERMS)
    if not BY_K:
        b_chunk, b_row = divide(thread, BN)
    packs = aligned_place(staged, STAGES * STAGE)
    left = packs + group_y * 64 * ROW
    right = packs + PARTS * BM * ROW + group_x * WN * ROW
    turns = (K + BK - 1) // BK
    # Where sums lie over what is packed, the next tile's first terms arrive while they are stored.
    ends = packs if APART else packs - packs
    # Fours of columns start at multiples of four, whatever the grid.
    c_first = c0 - c0 % (1 + 3 * VECTOR * FOURS_B * (1 - BY_K))
    across = (c1 - c_first + BN - 1) // BN
    tiles = (m1 - m0 + BM - 1) // BM * across
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for number in range(tiles):
                down, beside = divide(number, across)
                m, c = m0 + down * BM, c_first + beside * BN
                last = (c1 - 1) - (c1 - 1) % (1 + 3 * VECTOR * FOURS_B)

                # To staged[base]. Beyond the last terms zeros are copied: without a branch, copies start
                # between products.
                def copies(m, c, turn, base):
                    k = turn * BK
                    inside = turn < turns if K % BK == 0 else k + a_k < K
                    start = k + a_k if inside else 0
                    for i in range(BM * BK // (THREADS * (1 + 3 * VECTOR * FOURS_A))):
                        y = a_m + i * (THREADS * (1 + 3 * VECTOR * FOURS_A) // BK)
                        row = m + y if WHOLE_M % BM == 0 else min(m + y, m1 - 1)
                        copy_async(
                            staged, base + y * (BK + 4) + a_k,
                            A, (b * M + row) * K + start,
                            1 + 3 * VECTOR * FOURS_A, inside,
                        )  # fmt: skip
                    column = COLUMN(b, lead, min(c + b_c, last))
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
                        there = turn < turns if K % BK == 0 else k + t < K
                        copy_async(
                            staged, base + BM * (BK + 4) + place,
                            B, AT(from_b, step), 1 + 3 * VECTOR * FOURS_B,
                            there & INSIDE(from_b, step),
                        )  # fmt: skip
                    commit_copies()

                # A stage's terms, from staged[base], as warp groups read them: 16 bytes of a packed row at a
                # time, to the tile at staged[tile].
                def packed(base, tile, least, most):
                    of_a = read_terms(
                        staged, base + a_row * (BK + 4) + a_chunk * TERMS, 1,
                        BM * BK // TERMS // THREADS, THREADS * TERMS // BK * (BK + 4), KIND,
                    )  # fmt: skip
                    place = b_chunk * TERMS * (BN + 8) + b_row
                    if BY_K:
                        place = b_row * (BK + 4) + b_chunk * TERMS
                    of_b = read_terms(
                        staged, base + BM * (BK + 4) + place, 1 + (1 - BY_K) * (BN + 7),
                        BN * BK // TERMS // THREADS,
                        THREADS * TERMS // BK * (BK + 4) * BY_K
                        + THREADS // BN * TERMS * (BN + 8) * (1 - BY_K),
                        KIND,
                    )  # fmt: skip
                    least, most = pack_terms(
                        least, most, of_a, staged, tile, a_row, a_chunk,
                        THREADS * TERMS // BK, 0, ROW, BM * ROW, KIND,
                    )  # fmt: skip
                    return pack_terms(
                        least, most, of_b, staged, tile + PARTS * BM * ROW, b_row, b_chunk,
                        THREADS * TERMS // BK * BY_K, THREADS // BN * (1 - BY_K),
                        ROW, BN * ROW, KIND,
                    )  # fmt: skip

                # Products of the terms that are packed: of whole ones, or of some parts.
                def products(tile, given, fresh, parts):
                    return group_products(
                        given, staged, tile + left, tile + right,
                        WN, BK, ROW, BM * ROW, BN * ROW, 1, KIND, fresh, parts,
                    )  # fmt: skip

                if number == 0 or not APART:
                    for turn in range(STAGES):
                        copies(m, c, turn, turn * STAGE)
                await_copies(STAGES - 1)
                cuda.syncthreads()
                least, most = packed(0, packs, uint32(0xFFFFFFFF), uint32(0))
                sums = zeros_like(staged, WN // 2)
                # Where the terms lay that were packed last, and where they lie now.
                filled, tile = 0, 0
                for first in range(0, turns - 1, TOGETHER):
                    # Of all parts but the first, a 256th of the sums: what truncation takes of them is too
                    # little to be seen, so that they leave the tensor cores but once in TOGETHER stages.
                    rest = zeros_like(staged, WN // 2)
                    for turn in range(first, min(first + TOGETHER, turns - 1)):
                        await_copies(STAGES - 2)
                        publish_tiles()
                        cuda.syncthreads()
                        behind = filled + STAGE if filled < (STAGES - 1) * STAGE else 0
                        if KIND == 0:
                            large = products(tile, sums, SETS, 2)
                            rest = products(tile, rest, 0, 1)
                        else:
                            sums = products(tile, sums, 0, 0)
                        # While the tensor cores multiply, the next terms are packed.
                        copies(m, c, turn + STAGES, filled)
                        if KIND == 0:
                            sums = group_added(sums, large, 1, 1)
                        least, most = packed(behind, packs + (PACK - tile), least, most)
                        if KIND == 0:
                            rest = group_added(rest, rest, 0, 0)
                        else:
                            sums = group_added(sums, sums, 0, 0)
                        filled, tile = behind, PACK - tile
                    if KIND == 0:
                        sums = group_added(sums, rest, 1, 0)
                await_copies(0)
                publish_tiles()
                cuda.syncthreads()
                if KIND == 0:
                    large = products(tile, sums, SETS, 2)
                    rest = products(tile, sums, 1, 1)
                    sums = group_added(sums, large, 1, 1)
                    sums = group_added(sums, rest, 1, 0)
                else:
                    sums = products(tile, sums, 0, 0)
                    sums = group_added(sums, sums, 0, 0)
                if APART and number + 1 < tiles:
                    below, after = divide(number + 1, across)
                    for turn in range(STAGES):
                        copies(m0 + below * BM, c_first + after * BN, turn, turn * STAGE)
                # A part below 2^-126 may count as zero, which a factor of 2^-101 or more does not notice.
                # Sums of K of them times factors up to 2^20 are off by less than a unit in the last place
                # from K 2^-82 on.
                small = cuda.syncthreads_or(int32(least < uint32(26 << 24)))
                large = cuda.syncthreads_or(int32(most > uint32(147 << 24)))
                unsure = FLOAT(0)
                if small:
                    unsure = FLOAT(math.inf) if large else FLOAT(int32(K)) * FLOAT(2.07e-25)
                anew = 0
                if KIND == 0:
                    anew = 2 * cuda.syncthreads_or(any_unsure(sums, unsure))
                if TRANSPOSED:
                    mma_store_across(
                        staged, ends + group_x * WN * (BM + 4) + group_y * 64 + quarter * 16,
                        BM + 4, sums, WN, lane,
                    )  # fmt: skip
                else:
                    mma_store(
                        staged, ends + (group_y * 64 + quarter * 16) * (BN + 8) + group_x * WN,
                        BN + 8, sums, WN, lane,
                    )  # fmt: skip
                cuda.syncthreads()

                LEAVE(
                    OPERANDS, staged, ends, (thread, THREADS), (BM, BN), (b, lead, m, c), (m1, c0, c1),
                    VECTOR, anew, unsure,
                )  # fmt: skip
                cuda.syncthreads()


# The products of parts take so much longer than packing that few columns, and three parts, are enough.
_TILES: dict[str, Mapping[str, int]] = {
    "128x256": {"BM": 128, "BN": 256, "BK": 32, "WN": 256, "STAGES": 3},
    "128x128": {"BM": 128, "BN": 128, "BK": 32, "WN": 128, "STAGES": 3},
    "128x64": {"BM": 128, "BN": 64, "BK": 32, "WN": 64, "STAGES": 3},
    "64x128": {"BM": 64, "BN": 128, "BK": 32, "WN": 64, "STAGES": 3},
    "64x256": {"BM": 64, "BN": 256, "BK": 32, "WN": 128, "STAGES": 2},
    "64x64": {"BM": 64, "BN": 64, "BK": 64, "WN": 32, "STAGES": 3},
}
LARGEST_SPLIT = 128
"""Columns of a warp group whose terms are split: their sums of a stage need twice as many registers again."""


TOGETHER = 8
"""Stages whose products of all parts but the first are added up by the tensor cores."""


def _kind(root: Root) -> int:
    return product_mma.KINDS[precision_of(root.op)]


def _legal(tile: Mapping[str, int]):
    """What `product.mma*` takes, where its sums fit the registers."""

    def legal(root: Root) -> bool:
        if not product_mma.legal(root):
            return False
        return _kind(root) != SPLIT or tile["WN"] <= LARGEST_SPLIT

    return legal


def sets(columns: int, terms: int) -> int:
    """How many sums there are of the first parts' products, of so many terms: one for each instruction where
    registers hold them."""
    return 1 if columns == LARGEST_SPLIT else max(terms // 16, 1)


def _packs(tile: Mapping[str, int], kind: int) -> Mapping[str, int]:
    """Terms in 16 bytes of a packed row, words of a row, parts, and words of a stage."""
    terms, parts = 4 if kind == TF32 else 8, 3 if kind == SPLIT else 1
    row = 4 * tile["BK"] // terms
    return {
        "TERMS": terms,
        "ROW": row,
        "PARTS": parts,
        "SETS": sets(tile["WN"], tile["BK"]),
        "PACK": parts * (tile["BM"] + tile["BN"]) * row,
    }


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    kind = _kind(root)
    # A row of 128 bytes is the longest that the tensor cores read.
    own = {**tile, "BK": 32, "STAGES": 2} if kind == TF32 else tile
    found = {"KIND": kind, **own, "STAGE": product_mma.stage(root, own), **_packs(own, kind)}
    return {
        **found,
        "TOGETHER": TOGETHER,
        "APART": int(2 * found["PACK"] >= tile["BM"] * (tile["BN"] + 8)),
        "FOURS_A": int(product_of(root).extent(product_of(root).k) % 4 == 0),
    }


def _scratch(root: Root, tile: Parameters) -> int:
    """Copied stages, and two that are packed behind them; or all sums."""
    packs = 2 * tile["PACK"] + ALIGNMENT // 4
    return 4 * max(tile["STAGES"] * tile["STAGE"] + packs, tile["BM"] * (tile["BN"] + 8))


ALIGNMENT = 1024


def _work(tile: Mapping[str, int]):
    """Terms copied and packed, behind products that overlap with both."""

    def counted(part: Part) -> Work:
        tiles, run = product_mma.tiles(tile, part), run_of_b(product_of(part.root))
        kind = _kind(part.root)
        stages = tiles * math.ceil(part.terms / tile["BK"])
        products = stages * tile["BM"] * tile["BN"] * tile["BK"]
        of_a = 0 if part.terms % 4 == 0 else tile["BM"]
        of_b = 0 if run is not None and run.fours else tile["BN"]
        copied = work(stage=stages, pack=stages * tile["BK"] * (of_a + of_b))
        by_k = run is not None and run.by_k
        packing, barriers = (_PACKING_BY_K if by_k else _PACKING).get(kind, _ROUNDING)
        packed = packing * stages * tile["BK"] * (tile["BM"] + tile["BN"])
        waits = product_mma.ends(tile, part, tiles) + work(barrier=barriers * stages)
        multiplied = work(fragment=packed, mma=products * _EFFORT.get(kind, _SIXTEEN_BITS))
        return waits + copied + multiplied + part.store * part.elements

    return counted


RKERNELS = [
    RKernel(
        "product",
        f"wgmma{name}",
        "cuda",
        __name__,
        "product_wgmma",
        legal=_legal(tile),
        wgmma=True,
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        grid=cut_into_tiles(partial(product_mma.tiling, tile)),
        work=_work(tile),
    )
    for name, tile in _TILES.items()
]
