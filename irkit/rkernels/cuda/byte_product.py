"""Contractions and convolutions of bytes in sums of 32 bits, which wrap: on tensor cores, and by `dp4a`.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], as in `product.py`. Bytes are staged in shared memory
in words of four terms, of A row by row and of B column by column, wherever B's terms lie: where they do not
follow one another, four columns of four terms are read as words and turned, or, in windows, byte by byte.
What stands outside of an image is FILL, its zero point. While the terms of one stage are multiplied the
next are on their way.

`byte_product_dots` is for few columns, as of a product of few rows: a warp sums a row of A times each of
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from irkit.dialects.product_memory import run_of_b
from irkit.dialects.products import as_product, of_bytes
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.product import product_of, tiling_of
from irkit.rkernels.product_grids import cut_largest
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import cut_into_tiles
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256
# A multiply-add of bytes, in those of TF32.
_EFFORT = 0.25
_MOST_COLUMNS = 8


def byte_product_mma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp_y, warp_x = divide(warp, BN // WN)
    staged = shared_of(int32(0), scratch)
    next_a = cuda.local.array(BM * BK // 4 // THREADS, int32)
    next_b = cuda.local.array(BN * BK // 4 // THREADS, int32)
    by_row, by_word = divide(thread, BK // 4)
    b_k, b_n = divide(thread, BN)
    four_k, four_n = divide(thread, BN // 4)
    left = warp_y * WM * (BK // 4 + 4)
    right = (BM + warp_x * WN) * (BK // 4 + 4)
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0, m1, BM):
                # Fours of columns start at multiples of four, whatever the grid.
                for c in range(c0 - c0 % (1 + 3 * FOURS_B * (1 - BY_K)), c1, BN):
                    past = (c1 - 1) - (c1 - 1) % 4
                    at = c + four_n * 4 if FOURS_B * (1 - BY_K) else c + b_n
                    column = COLUMN(b, lead, min(at, past if FOURS_B * (1 - BY_K) else c1 - 1))
                    sums = integer_zeros(WM * WN // 32)
                    # Turn t stages the terms from t * BK on and multiplies those before. Beyond the
                    # last there is nothing new to fetch: without a branch, loads overlap products.
                    for turn in range((K + BK - 1) // BK + 1):
                        k = min(turn, (K - 1) // BK) * BK
                        # What lies behind the last term is zero in B, and any number in A.
                        for i in range(BM * BK // 4 // THREADS):
                            row = min(m + by_row + i * (THREADS * 4 // BK), m1 - 1)
                            first = (b * M + row) * K
                            at = k + by_word * 4
                            if FOURS_A:
                                (next_a[i],) = words_at(A, first + min(at, K - 4), 1, VECTOR)
                            else:
                                next_a[i] = four_bytes(
                                    A[first + min(at, K - 1)], A[first + min(at + 1, K - 1)],
                                    A[first + min(at + 2, K - 1)], A[first + min(at + 3, K - 1)],
                                )  # fmt: skip
                        if BY_K * FOURS_B * FOURS_A:
                            step = STEP(min(k + by_word * 4, K - 4))
                            for i in range(BN * BK // 4 // THREADS):
                                x = c + by_row + i * (THREADS * 4 // BK)
                                from_b = AT(COLUMN(b, lead, min(x, c1 - 1)), step)
                                (four,) = words_at(B, from_b, 1, VECTOR)
                                next_b[i] = four if k + by_word * 4 < K else int32(0)
                        elif FOURS_B * (1 - BY_K):
                            for i in range(BN * BK // 16 // THREADS):
                                at = k + (four_k + i * (THREADS * 4 // BN)) * 4
                                (w0,) = words_at(B, AT(column, STEP(min(at, K - 1))), 1, VECTOR)
                                (w1,) = words_at(B, AT(column, STEP(min(at + 1, K - 1))), 1, VECTOR)
                                (w2,) = words_at(B, AT(column, STEP(min(at + 2, K - 1))), 1, VECTOR)
                                (w3,) = words_at(B, AT(column, STEP(min(at + 3, K - 1))), 1, VECTOR)
                                w0 = w0 if at < K else int32(0)
                                w1 = w1 if at + 1 < K else int32(0)
                                w2 = w2 if at + 2 < K else int32(0)
                                w3 = w3 if at + 3 < K else int32(0)
                                x0, x1, x2, x3 = turn_words(w0, w1, w2, w3)
                                next_b[4 * i] = x0
                                next_b[4 * i + 1] = x1
                                next_b[4 * i + 2] = x2
                                next_b[4 * i + 3] = x3
                        else:
                            for i in range(BN * BK // 4 // THREADS):
                                at = k + (b_k + i * (THREADS // BN)) * 4
                                s0 = STEP(min(at, K - 1))
                                s1 = STEP(min(at + 1, K - 1))
                                s2 = STEP(min(at + 2, K - 1))
                                s3 = STEP(min(at + 3, K - 1))
                                v0 = int32(FETCH(OPERANDS, column, s0))
                                v1 = int32(FETCH(OPERANDS, column, s1))
                                v2 = int32(FETCH(OPERANDS, column, s2))
                                v3 = int32(FETCH(OPERANDS, column, s3))
                                v0 = v0 if INSIDE(column, s0) else int32(FILL)
                                v1 = v1 if INSIDE(column, s1) else int32(FILL)
                                v2 = v2 if INSIDE(column, s2) else int32(FILL)
                                v3 = v3 if INSIDE(column, s3) else int32(FILL)
                                v0 = v0 if at < K else int32(0)
                                v1 = v1 if at + 1 < K else int32(0)
                                v2 = v2 if at + 2 < K else int32(0)
                                v3 = v3 if at + 3 < K else int32(0)
                                next_b[i] = four_bytes(v0, v1, v2, v3)
                        if turn > 0:
                            base = ((turn + 1) & 1) * ((BM + BN) * (BK // 4 + 4))
                            sums = mma_bytes(
                                sums, staged, base + left, base + right, lane,
                                BK // 4 + 4, WM, WN, BK // 4, OF_SIGNED, BY_SIGNED,
                            )  # fmt: skip
                        base = (turn & 1) * ((BM + BN) * (BK // 4 + 4))
                        for i in range(BM * BK // 4 // THREADS):
                            y = by_row + i * (THREADS * 4 // BK)
                            staged[base + y * (BK // 4 + 4) + by_word] = next_a[i]
                        base += BM * (BK // 4 + 4)
                        for i in range(BN * BK // 4 // THREADS):
                            if BY_K * FOURS_B * FOURS_A:
                                x = by_row + i * (THREADS * 4 // BK)
                                word = by_word
                            elif FOURS_B * (1 - BY_K):
                                x = four_n * 4 + i % 4
                                word = four_k + i // 4 * (THREADS * 4 // BN)
                            else:
                                x = b_n
                                word = b_k + i * (THREADS // BN)
                            staged[base + x * (BK // 4 + 4) + word] = next_b[i]
                        cuda.syncthreads()
                    mma_store(
                        staged, warp_y * WM * (BN + 8 - 7 * TRANSPOSED) + warp_x * WN,
                        BN + 8 - 7 * TRANSPOSED, sums, WN, lane,
                    )  # fmt: skip
                    cuda.syncthreads()
                    for i in range(BM * BN // THREADS):
                        if TRANSPOSED:
                            x, y = divide(thread + i * THREADS, BM)
                        else:
                            y, x = divide(thread + i * THREADS, BN)
                        if m + y < m1 and c + x < c1 and c + x >= c0:
                            total = staged[y * (BN + 8 - 7 * TRANSPOSED) + x]
                            total += INIT(OPERANDS, b, m + y, lead, c + x)
                            STORE(OPERANDS, b, m + y, lead, c + x, int32(total))
                    cuda.syncthreads()


def byte_product_dots(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    sums = cuda.local.array(COLUMNS, int32)
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0 + warp, m1, THREADS // 32):
                for x in range(COLUMNS):
                    sums[x] = int32(0)
                for k in range(lane * 16, K, 512):
                    a_0, a_1, a_2, a_3 = words_at(A, (b * M + m) * K + k, 4, VECTOR)
                    step = STEP(k)
                    for x in range(COLUMNS):
                        column = COLUMN(b, lead, min(c0 + x, c1 - 1))
                        b_0, b_1, b_2, b_3 = words_at(B, AT(column, step), 4, VECTOR)
                        total = dot4(a_0, b_0, sums[x], OF_SIGNED, BY_SIGNED)
                        total = dot4(a_1, b_1, total, OF_SIGNED, BY_SIGNED)
                        total = dot4(a_2, b_2, total, OF_SIGNED, BY_SIGNED)
                        sums[x] = dot4(a_3, b_3, total, OF_SIGNED, BY_SIGNED)
                for x in range(COLUMNS):
                    total = sums[x]
                    total = int32(total + cuda.shfl_xor_sync(0xFFFFFFFF, total, 16))
                    total = int32(total + cuda.shfl_xor_sync(0xFFFFFFFF, total, 8))
                    total = int32(total + cuda.shfl_xor_sync(0xFFFFFFFF, total, 4))
                    total = int32(total + cuda.shfl_xor_sync(0xFFFFFFFF, total, 2))
                    total = int32(total + cuda.shfl_xor_sync(0xFFFFFFFF, total, 1))
                    if lane == x and c0 + x < c1:
                        total = int32(total + INIT(OPERANDS, b, m, lead, c0 + x))
                        STORE(OPERANDS, b, m, lead, c0 + x, total)


_TILES: dict[str, Mapping[str, int]] = {
    "128x128": {"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 32},
    "128x64": {"BM": 128, "BN": 64, "BK": 64, "WM": 32, "WN": 32},
    "64x128": {"BM": 64, "BN": 128, "BK": 64, "WM": 32, "WN": 32},
    "64x64": {"BM": 64, "BN": 64, "BK": 64, "WM": 32, "WN": 16},
    "64x32": {"BM": 64, "BN": 32, "BK": 128, "WM": 16, "WN": 16},
    "32x64": {"BM": 32, "BN": 64, "BK": 128, "WM": 16, "WN": 16},
    "32x32": {"BM": 32, "BN": 32, "BK": 128, "WM": 16, "WN": 8},
}


def legal(root: Root) -> bool:
    """Bytes, B in memory, sizes that are known and fit 32 bits."""
    product = as_product(root)
    if DYNAMIC in root.parallel or product is None or not of_bytes(product):
        return False
    sizes = [math.prod(tensor_type(v).get_shape()) for v in product.op.inputs]
    return max(sizes) < 1 << 31 and run_of_b(product) is not None


def legal_dots(root: Root) -> bool:
    """Few columns, and terms that lie side by side in sixteens."""
    product = as_product(root)
    if product is None or not legal(root):
        return False
    run = run_of_b(product)
    if run is None or not run.by_k or run.together < 16 or product.extent(product.k) % 16:
        return False
    return product.extent((*product.lead, *product.columns)) <= _MOST_COLUMNS


def _fours_a(root: Root) -> int:
    return int(product_of(root).extent(product_of(root).k) % 4 == 0)


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    return {**tile, "FOURS_A": _fours_a(root)}


def _columns(root: Root) -> Parameters:
    return {"COLUMNS": product_of(root).extent(product_of(root).columns)}


def _scratch(root: Root, tile: Parameters) -> int:
    """Two stages of both tiles, rows padded by four words against bank conflicts; or all sums."""
    stage = (tile["BM"] + tile["BN"]) * (tile["BK"] // 4 + 4)
    return 4 * max(2 * stage, tile["BM"] * (tile["BN"] + 8))


def _work(tile: Mapping[str, int]):
    """BK terms at a time: products, the wait for the next terms, and finding them in windows."""

    def counted(part: Part) -> Work:
        tiles, run = tiling_of(tile, part.root).of_part(part), run_of_b(product_of(part.root))
        steps = tiles * math.ceil(part.terms / tile["BK"])
        products = _EFFORT * steps * tile["BM"] * tile["BN"] * tile["BK"]
        words = steps * tile["BK"] // 4
        found = 0 if run is not None and run.fours else words * tile["BN"] * 4
        found += 0 if _fours_a(part.root) else words * tile["BM"] * 4
        warps = tile["BM"] * tile["BN"] / (tile["WM"] * tile["WN"])
        fragments = words * warps * (tile["WM"] + tile["WN"])
        ends = work(tile=tiles * (1 + tile["BM"] * tile["BN"] / 4096))
        stages = work(step=steps, pack=found, fragment=fragments, mma=products)
        return ends + stages + part.store * part.elements

    return counted


def _dots_rounds(part: Part) -> float:
    product = product_of(part.root)
    return math.ceil(part.share((*product.batch, *product.lead, *product.m)) / 8)


def _dots_work(part: Part) -> Work:
    """Rows of A by warps: each lane's bytes in sixteens, and the sums of lanes."""
    product, rounds = product_of(part.root), _dots_rounds(part)
    columns = part.share(product.columns)
    reads = math.ceil(part.terms / 512)
    each = work(
        round=reads, term=reads * 4 * (1 + columns) * THREADS_PER_BLOCK, shuffle=5 * columns
    )
    return each * rounds + part.store * part.elements


RKERNELS = [
    *(
        RKernel(
            "integer_product",
            f"mma{name}",
            "cuda",
            __name__,
            "byte_product_mma",
            legal=legal,
            scratch_bytes=_scratch,
            threads=THREADS_PER_BLOCK,
            parameters=partial(parameters_of, tile),
            vectors=("A", "B"),
            grid=cut_into_tiles(partial(tiling_of, tile)),
            work=_work(tile),
        )
        for name, tile in _TILES.items()
    ),
    RKernel(
        "integer_product",
        "dots",
        "cuda",
        __name__,
        "byte_product_dots",
        legal=legal_dots,
        parameters=_columns,
        vectors=("A", "B"),
        grid=cut_largest(_dots_rounds),
        work=_dots_work,
    ),
]
