"""Terms of products packed in two scaled float16 parts: rows are seen whole first, then cut.

A warp sees a row, 256 of whose terms lie side by side in memory, or all warps see 32 rows, of neighbours of
which a term each lies so; then threads cut pieces of 16 bytes. What rows have lost is looked for where they
have terms so small.
"""

from __future__ import annotations

import math

from irkit.dialects import te
from irkit.dialects.packed_terms import SCALED
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda.product_mma import THREADS_PER_BLOCK
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_WARPS = THREADS_PER_BLOCK // 32
_ROWS = 32
"""Rows that are seen together at most."""


def pack_scaled(task, tasks, rows, scratch, OPERANDS):
    t0, t1, g0, g1 = TILES(task)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    # The least and the largest size of each row, and behind them those that each warp has seen.
    staged = shared_of(float32(0), scratch)
    nothing = (float32(math.inf), float32(0))
    for first in range(g0 + RANK * TOGETHER, g1, RANKS * TOGETHER):
        groups = min(TOGETHER, g1 - first)
        row = warp if BY_K else lane
        own = min(first * 8 + row, GROUPS * 8 - 1)
        begin, step = (lane * 8, 256) if BY_K else (warp * 8, 64)
        seen = nothing
        # Four at once, so that their loads are on their way together.
        for k in range(begin, DEPTH, 4 * step):
            one, two = TERMS(OPERANDS, own, k), TERMS(OPERANDS, own, k + step)
            three, four = TERMS(OPERANDS, own, k + 2 * step), TERMS(OPERANDS, own, k + 3 * step)
            seen = sizes_seen(sizes_seen(seen, one), two)
            seen = sizes_seen(sizes_seen(seen, three), four)
        if BY_K:
            least, most = -warp_largest(-seen[0]), warp_largest(seen[1])
            if lane == 0:
                staged[row], staged[ROWS + row] = least, most
        else:
            at = (2 + 2 * warp) * ROWS + row
            staged[at], staged[at + ROWS] = seen[0], seen[1]
            cuda.syncthreads()
            if warp == 0:
                least, most = nothing
                for other in range(THREADS // 32):
                    at = (2 + 2 * other) * ROWS + row
                    least, most = min(least, staged[at]), max(most, staged[at + ROWS])
                staged[row], staged[ROWS + row] = least, most
        cuda.syncthreads()
        across = max(min(t1, BLOCKS) - t0, 0)
        count = across * groups * 8 * PIECES

        # Where a piece begins, its terms, and what they are multiplied by.
        def piece(i):
            if BY_K:
                beside, place = divide(i, across * PIECES)
                block, part = divide(place, PIECES)
            else:
                place, eighth = divide(i, 8)
                place, part = divide(place, PIECES)
                block, group = divide(place, groups)
                beside = group * 8 + eighth
            turned = beside % 8 if PIECES == 8 else beside % 8 // 2
            start = (((t0 + block) * PARTS * GROUPS + first) * 8 + beside) * PIECES
            start += part ^ turned
            k = ((t0 + block) * PIECES + part) * 8
            terms = TERMS(OPERANDS, first * 8 + beside, k)
            return fixed(start * 8), terms, row_scale(staged[ROWS + beside])[0]

        for i in range(thread, count, 4 * THREADS):
            one, two = piece(i), piece(min(i + THREADS, count - 1))
            three = piece(min(i + 2 * THREADS, count - 1))
            four = piece(min(i + 3 * THREADS, count - 1))
            store_scaled(PACKED, one[0], one[1], one[2], GROUPS * 64 * PIECES)
            store_scaled(PACKED, two[0], two[1], two[2], GROUPS * 64 * PIECES)
            store_scaled(PACKED, three[0], three[1], three[2], GROUPS * 64 * PIECES)
            store_scaled(PACKED, four[0], four[1], four[2], GROUPS * 64 * PIECES)
        # Headers come last, and behind them nothing.
        if t1 > BLOCKS:
            for beside in range(warp, groups * 8, THREADS // 32):
                scale, back = row_scale(staged[ROWS + beside])
                lost = float32(0)
                if small_terms(staged[beside], scale):
                    for k in range(lane * 8, DEPTH, 256):
                        lost += lost_of(TERMS(OPERANDS, first * 8 + beside, k), scale)
                    lost = warp_sum(lost)
                bound = row_bound(lost, staged[ROWS + beside])
                for n in range(lane, PARTS * PIECES, 32):
                    part, place = divide(n, PIECES)
                    start = ((BLOCKS * PARTS + part) * GROUPS + first) * 8 + beside
                    header = (back, bound) if n == 0 else (float32(0), float32(0))
                    store_header(PACKED, fixed((start * PIECES + place) * 8), header)
        cuda.syncthreads()


def _is_scaled(root: Root) -> bool:
    return isinstance(root.op, te.PackOp) and root.op.precision.data == SCALED


def _parameters(root: Root) -> Parameters:
    assert isinstance(root.op, te.PackOp)
    together = _together(root.op)
    return {"TOGETHER": together, "ROWS": 8 * together}


def _together(op: te.PackOp) -> int:
    """Groups that are seen together."""
    return 1 if op.by_k else _ROWS // 8


def _scratch(root: Root, parameters: Parameters) -> int:
    return 4 * _ROWS * (2 + 2 * _WARPS)


def _work(part: Part) -> Work:
    """Rows are seen whole by each rTask, then cut."""
    op = part.root.op
    assert isinstance(op, te.PackOp)
    blocks, parts, _, _, _ = part.root.parallel
    terms = part.elements / parts
    seen = terms / part.share((0,)) * blocks
    # Terms of a row that are on their way together, and how often those of some rows are.
    at_once = 4 * (256 if op.by_k else 64)
    turns = math.ceil(part.sizes[2] / _together(op)) * math.ceil(op.depth.value.data / at_once)
    each, cut = part.loads + work(op=4), part.loads + work(op=1 + 3 * parts)
    rounds = turns + part.rounds(terms, 32 * part.threads)
    return each * seen + cut * terms + work(round=rounds)


def _spread(part: Part) -> float:
    """Blocks see groups of their own."""
    op, groups = part.root.op, part.sizes[2]
    assert isinstance(op, te.PackOp)
    return math.ceil(groups / _together(op)) * THREADS_PER_BLOCK


RKERNELS = [
    RKernel(
        "pack",
        "scaled",
        "cuda",
        __name__,
        "pack_scaled",
        legal=_is_scaled,
        threads=THREADS_PER_BLOCK,
        parameters=_parameters,
        scratch_bytes=_scratch,
        work=_work,
        vectors=("X",),
        halves=True,
        spreads=_spread,
    ),
]
