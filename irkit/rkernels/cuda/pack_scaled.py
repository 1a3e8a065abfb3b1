"""Terms of products packed in two scaled float16 parts: rows are seen whole first, then cut.

A warp sees a row, 256 of whose terms lie side by side in memory, or all warps see up to 32 rows, of
neighbours of which a term each lies so; then threads cut pieces of 16 bytes. What rows have lost is looked
for where they have terms so small.
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
_BLOCKS = 128
"""Blocks that find something to do, roughly, before they are given more."""
# Rows are seen, then cut, one behind the other: it is as if a term had so many bytes more, and waits are
# longer than for terms that are used at once, by whether a row's terms lie side by side.
_APART, _WAITS = {True: 4.8, False: 8.8}, {True: 3.5, False: 6.5}


def pack_scaled(task, tasks, rows, scratch, OPERANDS):
    t0, t1, g0, g1 = TILES(task)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    # The least and the largest size of each row, and behind them those that each lane has seen.
    staged = shared_of(float32(0), scratch)
    nothing = (float32(math.inf), float32(0))
    for first in range(g0 + RANK * TOGETHER, g1, RANKS * TOGETHER):
        groups = min(TOGETHER, g1 - first)
        if BY_K:
            own, begin, step = warp, lane * 8, 256
        else:
            place, own = divide(lane, ROWS)
            begin, step = (warp * (32 // ROWS) + place) * 8, 64 * (32 // ROWS)

        # Of `ABREAST` rows, then of terms further on.
        def loaded(k, n):
            row = min(first * 8 + own + 8 * (n % ABREAST), GROUPS * 8 - 1)
            return TERMS(OPERANDS, row, k + n // ABREAST * step)

        seen = second = third = fourth = nothing
        # Many at once, so that their loads are on their way together.
        for k in range(begin, DEPTH, 4 // ABREAST * step):
            one, two, three, four = loaded(k, 0), loaded(k, 1), loaded(k, 2), loaded(k, 3)
            if ABREAST == 4:
                seen, second = sizes_seen(seen, one), sizes_seen(second, two)
                third, fourth = sizes_seen(third, three), sizes_seen(fourth, four)
            elif ABREAST == 2:
                seen = sizes_seen(sizes_seen(seen, one), three)
                second = sizes_seen(sizes_seen(second, two), four)
            else:
                seen = sizes_seen(sizes_seen(seen, one), two)
                seen = sizes_seen(sizes_seen(seen, three), four)

        # Of a row that a warp has seen.
        def settle(row, sizes):
            least, most = -warp_largest(-sizes[0]), warp_largest(sizes[1])
            if lane == 0:
                staged[row], staged[ROWS + row] = least, most

        if BY_K:
            settle(own, seen)
            if ABREAST > 1:
                settle(own + 8, second)
            if ABREAST > 2:
                settle(own + 16, third)
                settle(own + 24, fourth)
        else:
            at = 64 + 64 * warp + lane
            staged[at], staged[at + 32] = seen[0], seen[1]
            cuda.syncthreads()
            if thread < ROWS:
                least, most = nothing
                for other in range(THREADS // ROWS):
                    far, near = divide(other, 32 // ROWS)
                    at = 64 + 64 * far + near * ROWS + thread
                    least, most = min(least, staged[at]), max(most, staged[at + 32])
                staged[thread], staged[ROWS + thread] = least, most
        cuda.syncthreads()
        across = max(min(t1, TERM_BLOCKS) - t0, 0)
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
        if t1 > TERM_BLOCKS:
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
                    start = ((TERM_BLOCKS * PARTS + part) * GROUPS + first) * 8 + beside
                    header = (back, bound) if n == 0 else (float32(0), float32(0))
                    store_header(PACKED, fixed((start * PIECES + place) * 8), header)
        cuda.syncthreads()


def is_scaled(root: Root) -> bool:
    return isinstance(root.op, te.PackOp) and root.op.precision.data == SCALED


def _parameters(root: Root) -> Parameters:
    assert isinstance(root.op, te.PackOp)
    together = _together(root.op)
    return {
        "TOGETHER": together,
        "ROWS": 8 * together,
        "ABREAST": together if root.op.by_k else 1,
    }


def _together(op: te.PackOp) -> int:
    """Groups that are seen together: so many that there is enough to load at once, and that many blocks have
    some."""
    if op.by_k:
        return 4 if op.depth.value.data <= 256 else 2 if op.depth.value.data <= 512 else 1
    rows = op.matrix[1]
    return 1 if rows <= 8 * _BLOCKS else 2 if rows <= 16 * _BLOCKS else 4


def _step(op: te.PackOp) -> int:
    """Terms of a row that all who see it load at once."""
    return 256 if op.by_k else 64 * (4 // _together(op))


def _scratch(root: Root, parameters: Parameters) -> int:
    return 4 * 64 * (1 + _WARPS)


def _work(part: Part) -> Work:
    """Rows are seen whole by each rTask, then cut."""
    op = part.root.op
    assert isinstance(op, te.PackOp)
    blocks, parts, _, _, _ = part.root.parallel
    terms = part.elements / parts
    seen = terms / part.share((0,)) * blocks
    turns = math.ceil(part.sizes[2] / _together(op))
    at_once = _step(op) * (4 // _together(op) if op.by_k else 4)
    rounds = turns * math.ceil(op.depth.value.data / at_once)
    rounds += part.rounds(terms, 32 * part.threads)
    each, cut = part.loads + work(op=4), part.loads + work(op=1 + 3 * parts)
    # The first loads are under way while the block begins.
    more = work(byte=terms * _APART[op.by_k], round=(rounds - 1) * _WAITS[op.by_k])
    return each * seen + cut * terms + more


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
        legal=is_scaled,
        threads=THREADS_PER_BLOCK,
        parameters=_parameters,
        scratch_bytes=_scratch,
        work=_work,
        vectors=("X",),
        halves=True,
        spreads=_spread,
    ),
]
