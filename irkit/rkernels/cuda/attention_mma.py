"""Attention on tensor cores, by `mma.sync`: scores and weights never leave registers.

A block has BM queries and, one after another, blocks of BN keys and values, which are copied asynchronously
STAGES - 1 ahead. Each of its warps has WM queries; KG groups of warps share the keys, so that few queries are
work for all, and their sums meet at the end. After T. Dao, FlashAttention-2, arXiv:2307.08691, and for few
queries T. Dao and others, "Flash-Decoding for long-context inference", 2023.

KIND says what the tensor cores multiply (`irkit.runtime.intrinsics.cuda_mma`), PACKED whether operands lie in
memory as 16-bit floats, PARTS into how many of these a weight is then split. SPLIT, and more than one part,
give float32's own precision. Where parts overflow, cancel to NaN or are too small to be kept, the row is
computed once more without tensor cores, so it comes out as the plain rKernels have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.product_mma import BF16, F16, KINDS, SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.families.attention import Loops, cut, score, seen
from irkit.rkernels.families.attention_rows import rows_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def attention_mma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp_y, warp_x = divide(warp, KG)
    staged = shared_of(FLOAT(0), scratch)
    # Elements that are copied at once.
    q_each = ELEMENTS * (1 + 3 * VECTOR * (CHUNKS_Q | PACKED))
    k_each = ELEMENTS * (1 + 3 * VECTOR * (CHUNKS_K | PACKED))
    v_each = ELEMENTS * (1 + 3 * VECTOR * (CHUNKS_V | PACKED))
    after = SCALE if PACKED else FLOAT(1)
    # 16-bit floats that do not lie at multiples of 16 bytes are not copied.
    stop = i0 if PACKED and not VECTOR else i1
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
                base = BM * K_ROW + (turn % STAGES) * STAGE
                k = turn * BN
                if COPIED_K | PACKED:
                    for n in range(1 + (BN * DEPTH - 1) // (k_each * THREADS)):
                        at = (thread + n * THREADS) * k_each
                        j, e = divide(min(at, BN * DEPTH - k_each), DEPTH)
                        copy_async(
                            staged, base + j * K_ROW + e // ELEMENTS, KEY,
                            from_k + min(k + j, KEYS - 1) * STEP_K
                            + min(e, SIZE - k_each),
                            1 + 3 * VECTOR * (CHUNKS_K | PACKED), (k + j < ends) & (e < SIZE),
                        )  # fmt: skip
                else:
                    for n in range(thread, BN * DEPTH, THREADS):
                        j, e = divide(n, DEPTH)
                        x = LOAD_K(OPERANDS, b, min(k + j, KEYS - 1), min(e, SIZE - 1))
                        staged[base + j * K_ROW + e] = x if k + j < ends and e < SIZE else FLOAT(0)
                base += BN * K_ROW
                if COPIED_V | PACKED:
                    for n in range(1 + (BN * WIDTH - 1) // (v_each * THREADS)):
                        at = (thread + n * THREADS) * v_each
                        j, e = divide(min(at, BN * WIDTH - v_each), WIDTH)
                        copy_async(
                            staged, base + j * V_ROW + e // ELEMENTS, VALUE,
                            from_v + min(k + j, KEYS - 1) * STEP_V
                            + min(e, COLUMNS - v_each),
                            1 + 3 * VECTOR * (CHUNKS_V | PACKED), (k + j < ends) & (e < COLUMNS),
                        )  # fmt: skip
                else:
                    for n in range(thread, BN * WIDTH, THREADS):
                        j, e = divide(n, WIDTH)
                        x = LOAD_V(OPERANDS, b, min(k + j, KEYS - 1), min(e, COLUMNS - 1))
                        inside = k + j < ends and e < COLUMNS
                        staged[base + j * V_ROW + e] = x if inside else FLOAT(0)
                commit_copies()

            # Of the words that this thread copied, once a stage.
            def least_of(turn, least):
                base = BM * K_ROW + (turn % STAGES) * STAGE + BN * K_ROW
                for n in range(1 + (BN * WIDTH - 1) // (4 * THREADS)):
                    at = min((thread + n * THREADS) * 4, BN * WIDTH - 4)
                    j, e = divide(at, WIDTH)
                    least, _ = magnitudes(least, uint32(0), staged, base + j * V_ROW + e, 4)
                return least

            for n in range(1 + (BM * DEPTH - 1) // (q_each * THREADS)):
                at = (thread + n * THREADS) * q_each
                if at < BM * DEPTH:
                    r, e = divide(at, DEPTH)
                    if COPIED_Q | PACKED:
                        copy_async(
                            staged, r * K_ROW + e // ELEMENTS, QUERY,
                            from_q + min(i + r, i1 - 1) * STEP_Q
                            + min(e, SIZE - q_each),
                            1 + 3 * VECTOR * (CHUNKS_Q | PACKED), e < SIZE,
                        )  # fmt: skip
                    else:
                        x = LOAD_Q(OPERANDS, b, min(i + r, i1 - 1), min(e, SIZE - 1))
                        staged[r * K_ROW + e] = x if e < SIZE else FLOAT(0)
            for turn in range(STAGES - 1):
                copies(turn)
            odd, tiny = uint32(0), uint32(0xFFFFFFFF)
            if not PACKED:
                # The low part of a factor below 2^-113 loses up to 2^-136, which a key below 2^100 does not
                # notice; where the query is below, keys may be larger.
                await_copies(STAGES - 2)
                least, most = uint32(0xFFFFFFFF), uint32(0)
                for n in range(1 + (BM * DEPTH - 1) // (q_each * THREADS)):
                    at = (thread + n * THREADS) * q_each
                    if at < BM * DEPTH:
                        r, e = divide(at, DEPTH)
                        least, most = scaled_terms(
                            least,
                            most,
                            staged,
                            r * K_ROW + e,
                            1 + 3 * VECTOR * (CHUNKS_Q | PACKED),
                            SCALE,
                        )
                odd = (
                    uint32(1) if least < uint32(14 << 24) or most > uint32(227 << 24) else uint32(0)
                )
            largest = lowest_rows(WM // 8)
            totals = zeros_like(staged, WM // 8)
            sums = zeros_like(staged, WM * WIDTH // 32)
            for turn in range((ends + BN - 1) // BN):
                await_copies(STAGES - 2)
                cuda.syncthreads()
                copies(turn + STAGES - 1)
                base = BM * K_ROW + (turn % STAGES) * STAGE
                k = turn * BN + warp_x * WN
                scores = score_sums(
                    staged, warp_y * (WM * K_ROW), base + warp_x * (WN * K_ROW), lane,
                    K_ROW, WM, WN, DEPTH, KIND, PACKED,
                )  # fmt: skip
                if MASKED:
                    own = MASKS + warp * (WM * (WN + 8))
                    mma_store(staged, own, WN + 8, scores, WN, lane)
                    cuda.syncwarp()
                    for n in range(lane, WM * WN, 32):
                        r, j = divide(n, WN)
                        row, key = min(i + warp_y * WM + r, i1 - 1), min(k + j, KEYS - 1)
                        at = own + r * (WN + 8) + j
                        staged[at] = SCORE(OPERANDS, b, row, key, staged[at] * after)
                    cuda.syncwarp()
                    scores = mma_load(staged, own, WN + 8, WM, WN, lane)
                    cuda.syncwarp()
                if turn * BN + BN > whole:
                    scores = scores_within(
                        scores, lane, i + warp_y * WM + DIAGONAL + 1 - k, ends - k, WN, CAUSAL
                    )
                weights, largest, totals, factors = online_softmax(
                    scores, largest, totals, FLOAT(1) if MASKED else after, WN, EXACT
                )
                sums = weighted_sums(
                    sums, factors, weights, staged,
                    base + BN * K_ROW + warp_x * (WN * V_ROW), lane,
                    V_ROW, WIDTH, WN, KIND, PACKED, PARTS,
                )  # fmt: skip
                if EXACT and not PACKED:
                    tiny = least_of(turn, tiny)
            await_copies(0)
            # Sums lose up to 2^-136 of the least values' low parts.
            small = cuda.syncthreads_or(int32(tiny < uint32(14 << 24)))
            strange = cuda.syncthreads_or(int32(odd))
            unsure = FLOAT(0)
            if EXACT:
                unsure = FLOAT(math.inf) if strange else FLOAT(2.0e-34) if small else FLOAT(0)
            row_store(staged, STATS + warp_x * BM + warp_y * WM, largest, lane)
            row_store(
                staged, STATS + (KG + 1 + warp_x) * BM + warp_y * WM, row_totals(totals), lane
            )
            mma_store(
                staged, (warp_x * BM + warp_y * WM) * (WIDTH + 8), WIDTH + 8, sums, WIDTH, lane
            )
            cuda.syncthreads()
            if thread < BM:
                # Groups of keys meet: each had its own largest score.
                place = STATS + thread
                top = FLOAT(-math.inf)
                for g in range(KG):
                    top = max(top, staged[place + g * BM])
                shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                total = FLOAT(0)
                for g in range(KG):
                    factor = power_of_two(staged[place + g * BM] - shift)
                    staged[place + g * BM] = factor
                    total += staged[place + (KG + 1 + g) * BM] * factor
                staged[place + KG * BM] = total
                staged[place + (KG + 1) * BM] = FLOAT(0)
            cuda.syncthreads()
            for n in range(BM * WIDTH // THREADS):
                r, e = divide(thread + n * THREADS, WIDTH)
                total = FLOAT(0)
                for g in range(KG):
                    value = staged[(g * BM + r) * (WIDTH + 8) + e]
                    total += value * staged[STATS + g * BM + r]
                every = staged[STATS + KG * BM + r]
                total = total / every
                if EXACT:
                    staged[r * (WIDTH + 8) + e] = total
                    # Where there is no key, there is no doubt.
                    sure = unsure <= abs(total) < FLOAT(math.inf)
                    if e < COLUMNS and every != FLOAT(0) and not sure:
                        staged[STATS + (KG + 1) * BM + r] = FLOAT(1)
                elif i + r < i1 and e < COLUMNS:
                    STORE(OPERANDS, b, i + r, e, total)
            cuda.syncthreads()
            if EXACT:
                for n in range(BM * WIDTH // THREADS):
                    r, e = divide(thread + n * THREADS, WIDTH)
                    known = staged[STATS + (KG + 1) * BM + r] == FLOAT(0)
                    if i + r < i1 and e < COLUMNS and known:
                        STORE(OPERANDS, b, i + r, e, staged[r * (WIDTH + 8) + e])
                cuda.syncthreads()
                for r in range(warp, min(BM, i1 - i), THREADS // 32):
                    if staged[STATS + (KG + 1) * BM + r] != FLOAT(0):
                        ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i + r, lane)
                cuda.syncthreads()


_TILES: dict[str, Mapping[str, int]] = {
    # Queries of a block and of a warp, keys of a block at a time, groups of warps that share these.
    "16x64": {"BM": 16, "WM": 16, "BN": 64, "KG": 8},
    "16x128": {"BM": 16, "WM": 16, "BN": 128, "KG": 8},
    "32x64": {"BM": 32, "WM": 16, "BN": 64, "KG": 4},
    "64x64": {"BM": 64, "WM": 16, "BN": 64, "KG": 2},
    "128x32": {"BM": 128, "WM": 16, "BN": 32, "KG": 1},
    "128x64": {"BM": 128, "WM": 16, "BN": 64, "KG": 1},
    "128x64_wide": {"BM": 128, "WM": 32, "BN": 64, "KG": 2},
    "256x32": {"BM": 256, "WM": 32, "BN": 32, "KG": 1},
    "256x64": {"BM": 256, "WM": 32, "BN": 64, "KG": 1},
}
_LARGEST = 256
"""Elements of a query or a value: tiles of more do not fit."""
_MOST_SUMS, _MOST_SCORES = 128, 96
"""Registers of a thread that hold sums of values, and these and the scores where weights are split."""
_TYPES = {BF16: BFloat16Type, F16: Float16Type}
_EFFORT = {SPLIT: 3.0, TF32: 1.0, BF16: 0.5, F16: 0.5}


def _packed(root: Root) -> tuple[int, int] | None:
    """(kind, parts of a weight) of operands that lie in memory as 16-bit floats, in eights; else None."""
    op = Loops.of(root).op
    rows = [r for r in rows_of(op) if r is not None and r.together == 8]
    kind = next((k for k, t in _TYPES.items() if all(isinstance(r.element, t) for r in rows)), None)
    if len(rows) < 3 or kind is None or op.factor <= 0:
        return None
    precision = precision_of(op)
    if kind == BF16:
        return BF16, 1 if precision is Precision.BF16 else 3
    # What float16 parts of a weight leave out is more than float32 would.
    return None if precision.strict else (F16, 1)


def _kind(root: Root) -> tuple[int, int]:
    """(kind, parts of a weight)."""
    return _packed(root) or (KINDS[precision_of(root.op)], 1)


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _legal(tile: Mapping[str, int]) -> Callable[[Root], bool]:
    """float32 unless plain products are asked for, sizes that are known, and sums that fit the registers."""

    def legal(root: Root) -> bool:
        loops = Loops.of(root)
        if DYNAMIC in root.parallel or precision_of(root.op) not in KINDS:
            return False
        if not isinstance(tensor_type(loops.op.y).element_type, Float32Type):
            return False
        if max(loops.size, loops.columns) > _LARGEST:
            return False
        kind, parts = _kind(root)
        keys = tile["BN"] // tile["KG"]
        if kind in (BF16, F16) and keys < 16:
            return False
        sums = tile["WM"] * _up(loops.columns, 16) // 32
        split = kind == SPLIT or parts > 1
        return sums <= _MOST_SUMS and (not split or sums + tile["WM"] * keys // 32 <= _MOST_SCORES)

    return legal


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Tiles of 16 elements, in rows of four words more against bank conflicts."""
    loops, packed = Loops.of(root), _packed(root)
    kind, parts = _kind(root)
    elements = 1 if packed is None else 2
    depth, width = _up(loops.size, 16), _up(loops.columns, 16)
    of_k, of_v = depth // elements + 4, width // elements + 4
    stage = tile["BN"] * (of_k + of_v)
    stages, keys = 2, tile["BN"] // tile["KG"]
    masks = tile["BM"] * of_k + stages * stage
    warps = tile["BM"] // tile["WM"] * tile["KG"]
    ends = masks
    if loops.op.mask is not None:
        ends += warps * tile["WM"] * (keys + 8)
    sums, rows = tile["KG"] * tile["BM"] * (width + 8), warps * (loops.size + loops.columns)
    return {
        **tile,
        "WN": keys,
        "KIND": kind,
        "PACKED": elements - 1,
        "ELEMENTS": elements,
        "PARTS": parts,
        "EXACT": int(kind == SPLIT or parts > 1),
        "DEPTH": depth,
        "WIDTH": width,
        "K_ROW": of_k,
        "V_ROW": of_v,
        "STAGE": stage,
        "STAGES": stages,
        "MASKS": masks,
        "STATS": max(ends, sums, rows),
    }


def scratch(root: Root, p: Parameters) -> int:
    """Queries, stages and masks; or sums; or rows; and what groups of keys tell of each row."""
    return 4 * (p["STATS"] + (2 * p["KG"] + 1) * p["BM"])


def grid_of(tile: Mapping[str, int]) -> Callable[[Root, int], list[int]]:
    """Where rows see more and more keys, several parts a vEU: what is done with the first takes another."""

    def grid(root: Root, tasks: int) -> list[int]:
        finer = 1 if Loops.of(root).op.diagonal is None else 3
        return cut(root, finer * tasks, lambda lead, part: lead * math.ceil(part / tile["BM"]))

    return grid


def _work(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Fragments read and multiplied, block after block, behind copies that overlap with them."""

    def counted(part: Part) -> Work:
        p = parameters_of(tile, part.root)
        lead, count, many = seen(part)
        tiles = lead * math.ceil(count / p["BM"])
        blocks = tiles * math.ceil(many / p["BN"])
        pairs = p["BM"] * p["BN"]
        # Queries and keys, and values, as each of the warps reads them.
        words = p["BM"] // p["WM"] * p["BN"] * (p["DEPTH"] + p["WIDTH"])
        words += p["KG"] * p["BM"] * p["DEPTH"]
        each = work(
            mma=_EFFORT[p["KIND"]] * pairs * (p["DEPTH"] + p["PARTS"] * p["WIDTH"]),
            fragment=words / (4 * p["ELEMENTS"]),
            barrier=1,
            stage=p["BN"] / 128,
        )
        each += score(part) * pairs
        loops = Loops.of(part.root)
        fused = part.fused(loops.op.key) * loops.size + part.fused(loops.op.value) * loops.columns
        if not p["PACKED"]:
            each += fused * p["BN"]
        ends = part.store * (lead * count * loops.columns)
        return each * blocks + work(tile=tiles * (1 + p["BM"] * p["WIDTH"] / 16384)) + ends

    return counted


RKERNELS = [
    RKernel(
        "attention",
        f"mma{name}",
        "cuda",
        __name__,
        "attention_mma",
        legal=_legal(tile),
        work=_work(tile),
        reassociates=True,
        scratch_bytes=scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("QUERY", "KEY", "VALUE"),
        streams=True,
        stores_again=True,
        halves=True,
        grid=grid_of(tile),
    )
    for name, tile in _TILES.items()
]
