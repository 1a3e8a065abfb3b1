"""Attention of 16-bit floats on tensor cores, by warp groups (`wgmma`).

Two warp groups have 64 queries each and, one after another, blocks of BN keys and values, which are copied
asynchronously, STAGES - 1 ahead, straight to the rows that `wgmma` reads. Scores leave the tensor cores in
registers, become weights there, and go back from them: only queries, keys and values are in shared memory.
After T. Dao, FlashAttention-2, arXiv:2307.08691, and J. Shah and others, FlashAttention-3, arXiv:2407.08608.

Weights are rounded to the operands' type, so precision must allow it: what asks for more is for
`attention_mma.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.attention_mma import grid_of, packed_kind
from irkit.rkernels.cuda.product_mma import THREADS_PER_BLOCK
from irkit.rkernels.families.attention import Loops, score, seen
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def attention_wgmma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    own_row = group * 64 + quarter * 16
    staged = shared_of(FLOAT(0), scratch)
    packs = aligned_place(staged, 0)
    # Operands that do not start at multiples of 16 bytes cannot be copied.
    stop = i1 if VECTOR else i0
    for b in range(b0, b1):
        for i in range(stop + warp, i1, THREADS // 32):
            ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i, lane)
        from_q, from_k, from_v = OFFSET_Q(b), OFFSET_K(b), OFFSET_V(b)
        for i in range(i0, stop, BM):
            ends = max(min(min(i + BM, i1) + DIAGONAL, KEYS), 0) if CAUSAL else KEYS
            # The first key that not all rows see.
            whole = min(i + DIAGONAL + 1, ends) if CAUSAL else ends

            # What lies past the end is zero: a weight of zero times NaN is NaN.
            def copies(turn):
                tile = packs + QUERIES + (turn % STAGES) * STAGE
                for n in range(BN * DEPTH // 8 // THREADS):
                    y, chunk = divide(thread + n * THREADS, DEPTH // 8)
                    key, e = turn * BN + y, chunk * 8
                    plane, chunk = divide(chunk, 8)
                    copy_chunk(
                        staged, tile + plane * (BN * 32), y, chunk, KEY,
                        from_k + min(key, KEYS - 1) * STEP_K + min(e, SIZE - 8),
                        (key < ends) & (e < SIZE),
                    )  # fmt: skip
                tile += BN * DEPTH // 2
                for n in range(BN * WIDTH // 8 // THREADS):
                    y, chunk = divide(thread + n * THREADS, WIDTH // 8)
                    key, e = turn * BN + y, chunk * 8
                    plane, chunk = divide(chunk, 8)
                    copy_chunk(
                        staged, tile + plane * (BN * 32), y, chunk, VALUE,
                        from_v + min(key, KEYS - 1) * STEP_V + min(e, COLUMNS - 8),
                        (key < ends) & (e < COLUMNS),
                    )  # fmt: skip
                commit_copies()

            for n in range(BM * DEPTH // 8 // THREADS):
                y, chunk = divide(thread + n * THREADS, DEPTH // 8)
                e = chunk * 8
                plane, chunk = divide(chunk, 8)
                copy_chunk(
                    staged, packs + plane * (BM * 32), y, chunk, QUERY,
                    from_q + min(i + y, i1 - 1) * STEP_Q + min(e, SIZE - 8), e < SIZE,
                )  # fmt: skip
            for turn in range(STAGES - 1):
                copies(turn)
            largest = lowest_rows(2)
            totals = zeros_like(staged, 2)
            none = zeros_like(staged, BN // 2)
            sums = zeros_like(staged, WIDTH // 2)
            for turn in range((ends + BN - 1) // BN):
                await_copies(STAGES - 2)
                publish_tiles()
                cuda.syncthreads()
                tile = packs + QUERIES + (turn % STAGES) * STAGE
                begun = group_products(
                    none, staged, packs + group * (64 * 32), tile, BN, DEPTH, 32,
                    BM * 32, BN * 32, 1, KIND, 1, 0,
                )  # fmt: skip
                copies(turn + STAGES - 1)
                scores = group_added(none, begun, 1, 0)
                k = turn * BN
                if MASKED:
                    own = packs + MASKS + warp * (16 * (BN + 8))
                    mma_store(staged, own, BN + 8, scores, BN, lane)
                    cuda.syncwarp()
                    for n in range(lane, 16 * BN, 32):
                        r, j = divide(n, BN)
                        row, key = min(i + own_row + r, i1 - 1), min(k + j, KEYS - 1)
                        at = own + r * (BN + 8) + j
                        staged[at] = SCORE(OPERANDS, b, row, key, staged[at] * SCALE)
                    cuda.syncwarp()
                    scores = mma_load(staged, own, BN + 8, 16, BN, lane)
                    cuda.syncwarp()
                if k + BN > whole:
                    scores = scores_within(
                        scores, lane, i + own_row + DIAGONAL + 1 - k, ends - k, BN, CAUSAL
                    )
                weights, largest, totals, factors = online_softmax(
                    scores, largest, totals, FLOAT(1) if MASKED else SCALE, BN, 0
                )
                begun = weighted_products(
                    sums, factors, weights, staged, tile + BN * DEPTH // 2, WIDTH, BN, BN * 32, KIND
                )
                sums = group_added(sums, begun, 0, 0)
            await_copies(0)
            cuda.syncthreads()
            row_store(staged, packs + STATS + own_row, row_totals(totals), lane)
            mma_store(staged, packs + own_row * (WIDTH + 8), WIDTH + 8, sums, WIDTH, lane)
            cuda.syncthreads()
            for n in range(BM * WIDTH // THREADS):
                r, e = divide(thread + n * THREADS, WIDTH)
                if i + r < i1 and e < COLUMNS:
                    total = staged[packs + r * (WIDTH + 8) + e] / staged[packs + STATS + r]
                    STORE(OPERANDS, b, i + r, e, total)
            cuda.syncthreads()


_TILES: dict[str, Mapping[str, int]] = {
    "128x64": {"BM": 128, "BN": 64, "STAGES": 3},
    "128x128": {"BM": 128, "BN": 128, "STAGES": 2},
}
_LARGEST = 128
"""Elements of a query or a value: the sums of more do not fit the registers."""
_PLANE = 64
"""Elements of a row of 128 bytes."""
_EFFORT, _BARRIERS = 0.42, 6.0
"""A multiply-add in those of one warp in TF32, and what a block of keys takes beside, in barriers."""


def _up(n: int) -> int:
    return -(-n // _PLANE) * _PLANE


def _legal(root: Root) -> bool:
    """Operands that lie in memory as 16-bit floats, and weights that may be rounded as they are."""
    loops = Loops.of(root)
    if DYNAMIC in root.parallel or loops.op.count is not None:
        return False
    if max(loops.size, loops.columns) > _LARGEST:
        return False
    if not isinstance(tensor_type(loops.op.y).element_type, Float32Type):
        return False
    found = packed_kind(root)
    return found is not None and found[1] == 1


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Rows of 128 bytes, in planes of them."""
    loops, found = Loops.of(root), packed_kind(root)
    assert found is not None
    depth, width = _up(loops.size), _up(loops.columns)
    queries, stage = tile["BM"] * depth // 2, tile["BN"] * (depth + width) // 2
    masks = queries + tile["STAGES"] * stage
    ends = masks
    if loops.op.mask is not None:
        ends += THREADS_PER_BLOCK // 32 * 16 * (tile["BN"] + 8)
    rows = THREADS_PER_BLOCK // 32 * (loops.size + loops.columns)
    return {
        **tile,
        "KIND": found[0],
        "DEPTH": depth,
        "WIDTH": width,
        "QUERIES": queries,
        "STAGE": stage,
        "MASKS": masks,
        "STATS": max(ends, tile["BM"] * (width + 8), rows),
    }


def _scratch(root: Root, p: Parameters) -> int:
    """Queries, stages and masks, or sums, or rows; and the total of each row."""
    return 4 * (256 + p["STATS"] + p["BM"])


def _work(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Blocks of keys one after another, each behind a few barriers."""

    def counted(part: Part) -> Work:
        p = parameters_of(tile, part.root)
        lead, count, many = seen(part)
        tiles = lead * math.ceil(count / p["BM"])
        blocks = tiles * math.ceil(many / p["BN"])
        pairs = p["BM"] * p["BN"]
        each = work(mma=_EFFORT * pairs * (p["DEPTH"] + p["WIDTH"]), barrier=_BARRIERS)
        each += score(part) * pairs
        ends = part.store * (lead * count * Loops.of(part.root).columns)
        return each * blocks + work(tile=tiles * (1 + p["BM"] * p["WIDTH"] / 16384)) + ends

    return counted


RKERNELS = [
    RKernel(
        "attention",
        f"wgmma{name}",
        "cuda",
        __name__,
        "attention_wgmma",
        legal=_legal,
        wgmma=True,
        work=_work(tile),
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("QUERY", "KEY", "VALUE"),
        streams=True,
        halves=True,
        grid=grid_of(tile),
    )
    for name, tile in _TILES.items()
]
