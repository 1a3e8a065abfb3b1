"""Matrix products of 16-bit floats on tensor cores, by warp groups (`wgmma`).

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], as in `product_wgmma.py`, where both operands lie in
memory as float16, or as bfloat16: tiles are copied straight to the rows that `wgmma` reads, STAGES - 2 ahead
of the products. Two warp groups compute 64 rows and WN columns each. The products are exact; where sums are
to be float32's own, those of a stage leave the tensor cores, which truncate, and are added in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.product_memory import run_of_b
from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.product import fits, product_of, run_of
from irkit.rkernels.cuda.product_mma import BF16, F16, THREADS_PER_BLOCK, ends
from irkit.rkernels.cuda.product_wgmma import ALIGNMENT
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part, Work, work

_TYPES = {BF16: BFloat16Type, F16: Float16Type}
_ROUNDED = {BF16: Precision.BF16, F16: Precision.F16}


def product_wgmma_halves(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    group_y, group_x = divide(group, BN // WN)
    staged = shared_of(float32(0), scratch)
    packs = aligned_place(staged, 0)
    left = packs + group_y * (64 * 32)
    right = packs + BM * BK * 4 // EACH + group_x * (WN * 32)
    if not BY_K:
        right = packs + BM * BK // 2 + group_x * WN // 64 * (BK * 32) + group_x * WN % 64 // 2
    turns = (K + BK - 1) // BK
    # Where sums lie behind all stages, the next tile's first terms arrive while they are stored.
    ends = packs + STAGES * STAGE * APART
    # Eights of columns start at multiples of eight, whatever the grid.
    c_first = c0 - c0 % (8 - 7 * BY_K)
    across = (c1 - c_first + BN - 1) // BN
    tiles = (m1 - m0 + BM - 1) // BM * across
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for number in range(tiles):
                down, beside = divide(number, across)
                m, c = m0 + down * BM, c_first + beside * BN

                # Beyond the last terms zeros are copied: without a branch, copies start between products.
                def copies(number, turn):
                    down, beside = divide(number, across)
                    m, c = m0 + down * BM, c_first + beside * BN
                    tile = packs + (turn % STAGES) * STAGE
                    for i in range(BM * BK // EACH // THREADS):
                        y, chunk = divide(thread + i * THREADS, BK // EACH)
                        plane, chunk = divide(chunk, 8)
                        k = turn * BK + (plane * 8 + chunk) * EACH
                        copy_chunk(
                            staged, tile + plane * (BM * 32), y, chunk,
                            A, (b * M + min(m + y, m1 - 1)) * K + min(k, K - EACH), k < K,
                        )  # fmt: skip
                    for i in range(BN * BK // EACH // THREADS):
                        if BY_K:
                            x, chunk = divide(thread + i * THREADS, BK // EACH)
                            plane, chunk = divide(chunk, 8)
                            k = turn * BK + (plane * 8 + chunk) * EACH
                            column = COLUMN(b, lead, min(c + x, c1 - 1))
                            place = tile + BM * BK * 4 // EACH + plane * (BN * 32)
                        else:
                            x, chunk = divide(thread + i * THREADS, BN // 8)
                            plane, chunk = divide(chunk, 8)
                            k = turn * BK + x
                            past = (c1 - 1) - (c1 - 1) % 8
                            column = COLUMN(b, lead, min(c + plane * 64 + chunk * 8, past))
                            place = tile + BM * BK // 2 + plane * (BK * 32)
                        step = STEP(min(k, K - (1 + (EACH - 1) * BY_K)))
                        copy_chunk(
                            staged, place, x, chunk,
                            B, AT(column, step), (k < K) & INSIDE(column, step),
                        )  # fmt: skip
                    commit_copies()

                # Of the chunks that this thread copied, which it sees before others do; of 32 terms a row, so
                # that rows of B lie behind those of A.
                def rounded(turn):
                    y, chunk = divide(thread, BK // EACH)
                    round_chunks(
                        staged, packs + (turn % STAGES) * STAGE, y, chunk,
                        THREADS * EACH // BK, (BM + BN) * BK // EACH // THREADS,
                    )  # fmt: skip

                # A stage's products, begun once all its terms are there.
                def begun(turn, sums):
                    tile = (turn % STAGES) * STAGE
                    return group_products(
                        sums, staged, tile + left, tile + right, WN, BK, 32,
                        BM * 32, (BN * BY_K + BK * (1 - BY_K)) * 32, BY_K, KIND, FRESH, 0,
                    )  # fmt: skip

                sums = zeros_like(staged, WN // 2)
                if VECTOR:
                    if number == 0 or not APART:
                        for turn in range(STAGES - 2):
                            copies(number, turn)
                    if FRESH:
                        # Two stages at once: while the sums of one are added, the other's are computed.
                        for turn in range(0, turns - 1, 2):
                            await_copies(STAGES - 4)
                            publish_tiles()
                            cuda.syncthreads()
                            first = begun(turn, sums)
                            second = begun(turn + 1, sums)
                            copies(number, turn + STAGES - 2)
                            copies(number, turn + STAGES - 1)
                            sums = group_added(sums, first, 1, 1)
                            sums = group_added(sums, second, 1, 0)
                        if (K + BK - 1) // BK % 2:
                            await_copies(0)
                            publish_tiles()
                            cuda.syncthreads()
                            first = begun(turns - 1, sums)
                            sums = group_added(sums, first, 1, 0)
                    else:
                        # One stage behind the other, whose terms no copy replaces before all have met.
                        for turn in range(turns):
                            await_copies(STAGES - 3)
                            if KIND == 1:
                                rounded(turn)
                            publish_tiles()
                            cuda.syncthreads()
                            sums = begun(turn, sums)
                            copies(number, turn + STAGES - 2)
                            await_products(1)
                        sums = group_added(sums, sums, 0, 0)
                    await_copies(0)
                    cuda.syncthreads()
                    if APART and number + 1 < tiles:
                        for turn in range(STAGES - 2):
                            copies(number + 1, turn)
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

                # An operand that does not start at a multiple of 16 bytes cannot be copied.
                LEAVE(
                    OPERANDS, staged, ends, (thread, THREADS), (BM, BN), (b, lead, m, c), (m1, c0, c1),
                    VECTOR, 1 - VECTOR, FLOAT(0),
                )  # fmt: skip
                cuda.syncthreads()


TILES: dict[str, Mapping[str, int]] = {
    "128x256": {"BM": 128, "BN": 256, "BK": 64, "WN": 256, "STAGES": 4},
    "128x128": {"BM": 128, "BN": 128, "BK": 64, "WN": 128, "STAGES": 6},
    "128x64": {"BM": 128, "BN": 64, "BK": 64, "WN": 64, "STAGES": 8},
    "64x128": {"BM": 64, "BN": 128, "BK": 64, "WN": 64, "STAGES": 8},
    "64x64": {"BM": 64, "BN": 64, "BK": 64, "WN": 32, "STAGES": 10},
    "64x32": {"BM": 64, "BN": 32, "BK": 64, "WN": 16, "STAGES": 12},
}
_MOST_BYTES, _FEWEST_STAGES, _FEW_STAGES = 200 * 1024, 4, 16
_LARGEST_FRESH = 128
"""Columns of a warp group whose sums of one stage, added in float32, need as many registers again."""


def _kind(product: Product) -> int | None:
    """What both operands lie in memory as."""
    elements = [tensor_type(product.op.inputs[i]).element_type for i in (product.a, product.b)]
    return next((k for k, t in _TYPES.items() if all(isinstance(e, t) for e in elements)), None)


def _fresh(root: Root) -> bool:
    """Whether the tensor cores' own sums are not exact enough."""
    kind = _kind(product_of(root))
    return kind is None or precision_of(root.op) is not _ROUNDED[kind]


def legal(tile: Mapping[str, int]):
    """Products of 16-bit floats that are read in eights, and summed in float32; sizes that are known."""

    def takes(root: Root) -> bool:
        product = as_product(root)
        if DYNAMIC in root.parallel or product is None or not fits(product):
            return False
        kind, run = _kind(product), run_of_b(product)
        if precision_of(root.op) is Precision.IEEE:
            return False
        if kind is None or run is None or run.together < 8 or product.extent(product.k) % 8:
            return False
        element = tensor_type(product.op.results[0]).element_type
        if not isinstance(element, Float32Type) or product.extent(product.m) < 8:
            return False
        # A group may compute 64 rows more than once.
        return tile["WN"] * tile.get("HIGH", 1) <= _LARGEST_FRESH or not _fresh(root)

    return takes


def asked(root: Root) -> Parameters:
    """What the tensor cores multiply, and whether their sums are exact enough."""
    kind = _kind(product_of(root))
    assert kind is not None
    return {"KIND": kind, "FRESH": int(_fresh(root))}


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    run = run_of_b(product_of(root))
    # Where columns lie side by side, a row of B has 64 of them, used or not.
    columns = tile["BN"] if run is not None and run.by_k else max(tile["BN"], 64)
    stage = (tile["BM"] + columns) * tile["BK"] // 2
    own = {**asked(root), **tile, "STAGE": stage, "EACH": 8}
    return own | apart(root, own)


def apart(root: Root, own: Parameters) -> Parameters:
    """Whether sums have memory of their own, and how many stages that leaves: where there are few terms, ends
    come often, and few stages suffice."""
    terms, sums = product_of(root).extent(product_of(root).k), own["BM"] * (own["BN"] + 8)
    left = (_MOST_BYTES // 4 - sums) // own["STAGE"]
    if terms > _FEW_STAGES * own["BK"] or left < _FEWEST_STAGES:
        return {"APART": 0}
    return {"APART": 1, "STAGES": min(own["STAGES"], left)}


def ahead(own: Parameters) -> float:
    """The share of a tile's end that is left where the next one's terms arrive meanwhile."""
    return 0.7 if own["APART"] else 1.0


def scratch(root: Root, tile: Parameters) -> int:
    """All stages, and all sums behind them or over them."""
    staged = tile["STAGES"] * tile["STAGE"] * (1 if tile["APART"] else 0)
    over = tile["STAGES"] * tile["STAGE"] - staged
    return 4 * (ALIGNMENT // 4 + staged + max(over, tile["BM"] * (tile["BN"] + 8)))


def tiling(tile: Mapping[str, int], root: Root) -> Tiling:
    """Where eights of columns are read, a tile starts at a multiple of eight."""
    run = run_of(root)
    return Tiling(tile["BM"], tile["BN"], column_unit=8 if run is not None and not run.by_k else 1)


def tiles(tile: Mapping[str, int], part: Part) -> float:
    """Tiles of the largest part."""
    return tiling(tile, part.root).of_part(part)


_OFTEN, _TIMES = 0.47, 8
"""How much less a row takes that many tiles read, and how many times as many rows the other has then."""


def by_rows(part: Part, rows: int, columns: int) -> float:
    """Rows and columns of a stage as they arrive, in those of equal operands: what many tiles read comes
    sooner, and what few read later."""
    product = product_of(part.root)
    ratio = product.extent(product.m) / product.extent(product.columns)
    often = _OFTEN * max(min(math.log(ratio, _TIMES), 1.0), -1.0)
    return rows * (1 + often) + columns * (1 - often)


# A multiply-add of a warp group in 16 bits, in those of one warp in TF32.
_EFFORT = 0.5
_AT_ONCE = 160
"""Rows and columns whose terms arrive while one stage is waited for."""


def _work(tile: Mapping[str, int]):
    """Stages that arrive one after another, behind products that overlap with them."""

    def counted(part: Part) -> Work:
        count = tiles(tile, part)
        stages = count * math.ceil(part.terms / tile["BK"])
        products = stages * tile["BM"] * tile["BN"] * tile["BK"]
        waits = stages * (tile["BM"] + tile["BN"]) / _AT_ONCE
        multiplied = work(stage=waits, mma=products * _EFFORT)
        leaving = ends(tile, part, count) * ahead(parameters_of(tile, part.root))
        return leaving + multiplied + part.store * part.elements

    return counted


RKERNELS = [
    RKernel(
        "product",
        f"wgmma{name}_halves",
        "cuda",
        __name__,
        "product_wgmma_halves",
        legal=legal(tile),
        wgmma=True,
        reassociates=True,
        scratch_bytes=scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        halves=True,
        grid=cut_into_tiles(partial(tiling, tile)),
        work=_work(tile),
    )
    for name, tile in TILES.items()
]
