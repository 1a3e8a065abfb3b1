"""Attention with the softmax going along: tiles of rows against blocks of keys, all in shared memory.

A block of threads has BM queries and, one after another, blocks of BN keys and values, of which the next are
on their way while one is computed. Scores are sums of tiles, KG groups of threads sharing the elements of a
query; they are raised by LANES threads a row, and what was summed of earlier blocks is scaled down where a
larger score turns up. Sums of values stay in registers, KV groups of threads sharing the keys. After
T. Dao, FlashAttention-2, arXiv:2307.08691; M. Milakov and N. Gimelshein, arXiv:1805.02867.

`attention_warp` gives a warp a row: for heads too large for tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.families.attention import Loops, cut, score, seen
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256


def attention_tiles(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    staged = shared_of(FLOAT(0), scratch)
    next_k = cuda.local.array(KEY_LOADS, FLOAT)
    next_v = cuda.local.array(VALUE_LOADS, FLOAT)
    mine = cuda.local.array(BN // LANES, FLOAT)
    keys = DEPTH * (BM + 4)
    values = keys + DEPTH * (BN + 4)
    scores = values + BN * (WIDTH + 4)
    largest = scores + KG * BN * (BM + 4)
    totals = largest + BM
    factors = totals + BM
    group, within = divide(thread, THREADS // KG)
    ky, rx = divide(within, BM // 4)
    share, within = divide(thread, THREADS // KV)
    vy, vx = divide(within, WIDTH // TN)
    row, lane = divide(thread, LANES)
    for b in range(b0, b1):
        for i in range(i0, i1, BM):
            for n in range(thread, BM * DEPTH, THREADS):
                r, e = divide(n, DEPTH)
                x = LOAD_Q(OPERANDS, b, min(i + r, i1 - 1), min(e, SIZE - 1)) * SCALE
                staged[e * (BM + 4) + r] = x if e < SIZE else FLOAT(0)
            if thread < BM:
                staged[largest + thread] = FLOAT(-math.inf)
                staged[totals + thread] = FLOAT(0)
            ends = max(min(min(i + BM, i1) + DIAGONAL, KEYS), 0) if CAUSAL else KEYS
            blocks = (ends + BN - 1) // BN
            sums = zeros_like(staged, 4 * TN)
            # Turn t stages block t and computes the one before. Beyond the last there is nothing new to
            # fetch: without a branch, loads overlap the sums.
            for turn in range(blocks + 1):
                k = max(min(turn, blocks - 1), 0) * BN
                for n in range(KEY_LOADS):
                    j, e = divide(min(thread + n * THREADS, BN * DEPTH - 1), DEPTH)
                    next_k[n] = LOAD_K(OPERANDS, b, min(k + j, KEYS - 1), min(e, SIZE - 1))
                for n in range(VALUE_LOADS):
                    j, e = divide(min(thread + n * THREADS, BN * WIDTH - 1), WIDTH)
                    next_v[n] = LOAD_V(OPERANDS, b, min(k + j, KEYS - 1), min(e, COLUMNS - 1))
                if turn > 0:
                    k = (turn - 1) * BN
                    part = zeros_like(staged, 16)
                    for c in range(CHUNKS):
                        at = (group * CHUNKS + c) * CHUNK
                        part = tile_sums(
                            part, staged, keys + at * (BN + 4) + ky * 4, at * (BM + 4) + rx * 4,
                            BN + 4, BM + 4, 4, 4, CHUNK,
                        )  # fmt: skip
                    place = scores + (group * BN + ky * 4) * (BM + 4) + rx * 4
                    tile_store(staged, place, BM + 4, part, 4)
                    cuda.syncthreads()
                    before = staged[largest + row]
                    top = before
                    for n in range(BN // LANES):
                        j = lane + n * LANES
                        s = staged[scores + j * (BM + 4) + row]
                        for g in range(1, KG):
                            s += staged[scores + (g * BN + j) * (BM + 4) + row]
                        if MASKED:
                            s = SCORE(OPERANDS, b, min(i + row, i1 - 1), min(k + j, KEYS - 1), s)
                        limit = min(i + row + DIAGONAL + 1, ends) if CAUSAL else ends
                        mine[n] = s if k + j < limit else FLOAT(-math.inf)
                        # A NaN must reach every output: it makes the sum NaN, even if this drops it.
                        top = max(top, mine[n])
                    distance = LANES // 2
                    while distance > 0:
                        top = max(top, cuda.shfl_xor_sync(0xFFFFFFFF, top, distance))
                        distance >>= 1
                    # Where no key has been seen yet, all weights are zero.
                    shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                    total = FLOAT(0)
                    for n in range(BN // LANES):
                        power = EXP(mine[n] - shift)
                        staged[scores + (lane + n * LANES) * (BM + 4) + row] = power
                        total += power
                    distance = LANES // 2
                    while distance > 0:
                        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
                        distance >>= 1
                    if lane == 0:
                        factor = EXP(before - shift)
                        staged[largest + row] = top
                        staged[totals + row] = staged[totals + row] * factor + total
                        staged[factors + row] = factor
                    cuda.syncthreads()
                    sums = tile_scaled(sums, staged, factors + vy * 4, 4, TN)
                    first = share * (BN // KV)
                    sums = tile_sums(
                        sums, staged, scores + first * (BM + 4) + vy * 4,
                        values + first * (WIDTH + 4) + vx * TN, BM + 4, WIDTH + 4, 4, TN, BN // KV,
                    )  # fmt: skip
                    cuda.syncthreads()
                # What lies past the end is zero: a weight of zero times NaN is NaN.
                for n in range(KEY_LOADS):
                    at = thread + n * THREADS
                    if at < BN * DEPTH:
                        j, e = divide(at, DEPTH)
                        staged[keys + e * (BN + 4) + j] = next_k[n] if e < SIZE else FLOAT(0)
                for n in range(VALUE_LOADS):
                    at = thread + n * THREADS
                    if at < BN * WIDTH:
                        j, e = divide(at, WIDTH)
                        inside = k + j < ends and e < COLUMNS
                        staged[values + j * (WIDTH + 4) + e] = next_v[n] if inside else FLOAT(0)
                cuda.syncthreads()
            place = keys + (share * BM + vy * 4) * WIDTH + vx * TN
            tile_store(staged, place, WIDTH, sums, TN)
            cuda.syncthreads()
            for n in range(thread, BM * COLUMNS, THREADS):
                r, e = divide(n, COLUMNS)
                if i + r < i1:
                    total = FLOAT(0)
                    for g in range(KV):
                        total += staged[keys + (g * BM + r) * WIDTH + e]
                    STORE(OPERANDS, b, i + r, e, PORTION(total, staged[totals + r]))
            if PARTED and thread < min(BM, i1 - i):
                weight = staged[largest + thread] + math.log(staged[totals + thread])
                STORE(OPERANDS, b, i + thread, COLUMNS, weight)
            cuda.syncthreads()


def attention_warp(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    staged = shared_of(FLOAT(0), scratch)
    for b in range(b0, b1):
        for i in range(i0 + warp, i1, THREADS // 32):
            ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i, lane)


def tile_parameters(root: Root, rows: int, keys: int, threads: int) -> dict[str, int]:
    """Of tiles of `rows` queries and `keys` keys, in blocks of `threads`.

    DEPTH elements of a query and WIDTH of a value, padded, lie in shared memory; a thread sums CHUNK elements
    of a query at a time, CHUNKS times, and TN columns of four rows.
    """
    loops = Loops.of(root)
    groups = threads // (keys // 4 * (rows // 4))
    each = math.ceil(loops.size / groups)
    chunks = math.ceil(each / 32)
    chunk = math.ceil(each / chunks)
    depth = groups * chunks * chunk
    across = min(threads // (rows // 4), 1 << max(0, math.ceil(loops.columns / 4) - 1).bit_length())
    across = max(across, threads // (rows // 4) // keys)
    columns = 4 * math.ceil(loops.columns / (4 * across))
    return {
        "BM": rows,
        "BN": keys,
        "CHUNK": chunk,
        "CHUNKS": chunks,
        "DEPTH": depth,
        "KEY_LOADS": math.ceil(keys * depth / threads),
        "KG": groups,
        "KV": threads // (rows // 4 * across),
        "LANES": threads // rows,
        "TN": columns,
        "VALUE_LOADS": math.ceil(keys * across * columns / threads),
        "WIDTH": across * columns,
    }


def tile_scratch(root: Root, p: Parameters) -> int:
    """Queries, keys, values and scores, rows padded by four against bank conflicts; sums in the end."""
    staged = p["DEPTH"] * (p["BN"] + 4) + p["BN"] * (p["WIDTH"] + 4)
    staged += p["KG"] * p["BN"] * (p["BM"] + 4) + 3 * p["BM"]
    # Totals of rows lie behind the sums.
    sums = p["KV"] * p["BM"] * p["WIDTH"]
    if sums > staged - 3 * p["BM"]:
        raise AssertionError("sums of values are no larger than what they are made of")
    return (p["DEPTH"] * (p["BM"] + 4) + staged) * _itemsize(root)


def _itemsize(root: Root) -> int:
    return numpy_dtype(tensor_type(Loops.of(root).op.y).element_type).itemsize


def _fits(rows: int, keys: int) -> Callable[[Root], bool]:
    """Sizes that are known, and sums that fit in registers and in shared memory."""

    def fits(root: Root) -> bool:
        if DYNAMIC in root.parallel:
            return False
        p = tile_parameters(root, rows, keys, THREADS_PER_BLOCK)
        loads = p["KEY_LOADS"] + p["VALUE_LOADS"]
        return p["TN"] <= 16 and loads <= 96 and _room(p)

    return fits


def _room(p: Parameters) -> bool:
    staged = p["DEPTH"] * (p["BN"] + 4) + p["BN"] * (p["WIDTH"] + 4)
    return p["KV"] * p["BM"] * p["WIDTH"] <= staged + p["KG"] * p["BN"] * (p["BM"] + 4)


def _tile_grid(rows: int) -> Callable[[Root, int], list[int]]:
    def grid(root: Root, tasks: int) -> list[int]:
        return cut(root, tasks, lambda lead, part: lead * math.ceil(part / rows))

    return grid


def _tile_work(rows: int, keys: int) -> Callable[[Part], Work]:
    """Whole tiles are computed, and block after block waits for the next keys."""

    def counted(part: Part) -> Work:
        p = tile_parameters(part.root, rows, keys, THREADS_PER_BLOCK)
        lead, count, many = seen(part)
        tiles = lead * math.ceil(count / rows)
        blocks = tiles * math.ceil(many / keys)
        products = rows * keys * (p["DEPTH"] + p["WIDTH"]) * part.lanes
        exchanges = 2 * (p["LANES"].bit_length() - 1)
        each = work(step=1, fma=products, barrier=4, shuffle=exchanges)
        each += (score(part) + work(scalar=2 + p["KG"])) * (rows * keys)
        loops = Loops.of(part.root)
        fused = part.fused(loops.op.key) * loops.size + part.fused(loops.op.value) * loops.columns
        ends = part.store * (lead * count * loops.columns)
        return each * blocks + fused * (blocks * keys) + work(tile=2 * tiles, step=tiles) + ends

    return counted


def _warp_scratch(root: Root, parameters: Parameters) -> int:
    loops = Loops.of(root)
    return THREADS_PER_BLOCK // 32 * (loops.size + loops.columns) * _itemsize(root)


def _warp_work(part: Part) -> Work:
    """Each key waits for the sum of its score."""
    loops = Loops.of(part.root)
    lead, rows, keys = seen(part)
    rounds = lead * part.rounds(rows, THREADS_PER_BLOCK // 32)
    each = part.load(loops.op.key) * loops.size + part.load(loops.op.value) * loops.columns
    each += work(dot=2.0 * (loops.size + loops.columns)) + score(part)
    waits = work(shuffle=5, round=2, chain=2) * (rounds * keys)
    return waits + each * (lead * rows * keys) + part.store * (lead * rows * loops.columns)


_TILES = {"16x32": (16, 32), "16x64": (16, 64), "32x64": (32, 64), "64x64": (64, 64)}

RKERNELS = [
    *(
        RKernel(
            "attention",
            f"tile{name}",
            "cuda",
            __name__,
            "attention_tiles",
            legal=_fits(rows, keys),
            work=_tile_work(rows, keys),
            reassociates=True,
            scratch_bytes=tile_scratch,
            threads=THREADS_PER_BLOCK,
            parameters=lambda root, r=rows, k=keys: tile_parameters(root, r, k, THREADS_PER_BLOCK),
            grid=_tile_grid(rows),
        )
        for name, (rows, keys) in _TILES.items()
    ),
    RKernel(
        "attention",
        "warp",
        "cuda",
        __name__,
        "attention_warp",
        work=_warp_work,
        reassociates=True,
        scratch_bytes=_warp_scratch,
        threads=THREADS_PER_BLOCK,
    ),
]
