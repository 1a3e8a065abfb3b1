"""Terms of products packed in two scaled float16 parts, of few long rows: a block has a row at a time.

The blocks of a cluster share the rows of a group.
All threads load a row's terms at once, and have them until its scale is known: none is read twice, and there
is one way to memory to wait for. `pack_scaled.py` has the packing of many rows.
"""

from __future__ import annotations

import math

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda.pack_scaled import is_scaled
from irkit.rkernels.cuda.product_mma import THREADS_PER_BLOCK
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work

_WARPS = THREADS_PER_BLOCK // 32
_PIECES = 4
"""Of 8 terms, which a thread has of a row."""
_FEWEST = 512
"""Terms of a row that a block is worth."""
_BLOCKS = 8
"""Of a cluster: as many as a group has rows."""
_SEATS = 132
"""Blocks that all of memory's width is there for at once, roughly."""
# What a row takes behind another one, in waits; and what a term takes beside, in bytes: they come from far.
_WAITS, _APART = 5.0, 4.8


def pack_scaled_rows(task, tasks, rows, scratch, OPERANDS):
    t0, t1, g0, g1 = TILES(task)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    # The least and the largest size that each warp has seen, then what it has lost.
    staged = shared_of(float32(0), scratch)
    nothing = (float32(math.inf), float32(0))
    for row in range(g0 * 8 + RANK, g1 * 8, RANKS):
        group, beside = divide(row, 8)

        def loaded(n):
            return TERMS(OPERANDS, row, (thread + n * THREADS) * 8)

        one, two, three, four = loaded(0), loaded(1), loaded(2), loaded(3)
        seen = sizes_seen(sizes_seen(nothing, one), two)
        seen = sizes_seen(sizes_seen(seen, three), four)
        least, most = -warp_largest(-seen[0]), warp_largest(seen[1])
        if lane == 0:
            staged[warp], staged[THREADS // 32 + warp] = least, most
        cuda.syncthreads()
        for other in range(THREADS // 32):
            least, most = min(least, staged[other]), max(most, staged[THREADS // 32 + other])
        scale, back = row_scale(most)

        def stored(n, terms):
            block, part = divide(thread + n * THREADS, PIECES)
            turned = beside if PIECES == 8 else beside // 2
            start = ((block * PARTS * GROUPS + group) * 8 + beside) * PIECES
            if t0 <= block < min(t1, TERM_BLOCKS):
                start += part ^ turned
                store_scaled(PACKED, fixed(start * 8), terms, scale, GROUPS * 64 * PIECES)

        stored(0, one)
        stored(1, two)
        stored(2, three)
        stored(3, four)
        # Headers come last, and behind them nothing.
        if t1 > TERM_BLOCKS:
            lost = float32(0)
            if small_terms(least, scale):
                lost = lost_of(one, scale) + lost_of(two, scale)
                lost += lost_of(three, scale) + lost_of(four, scale)
                lost = warp_sum(lost)
                if lane == 0:
                    staged[2 * (THREADS // 32) + warp] = lost
                cuda.syncthreads()
                lost = float32(0)
                for other in range(THREADS // 32):
                    lost += staged[2 * (THREADS // 32) + other]
            bound = row_bound(lost, most)
            if warp == 0:
                for n in range(lane, PARTS * PIECES, 32):
                    part, place = divide(n, PIECES)
                    start = ((TERM_BLOCKS * PARTS + part) * GROUPS + group) * 8 + beside
                    header = (back, bound) if n == 0 else (float32(0), float32(0))
                    store_header(PACKED, fixed((start * PIECES + place) * 8), header)
        cuda.syncthreads()


def _legal(root: Root) -> bool:
    """Rows whose terms lie side by side, and of which a block can have all."""
    if not is_scaled(root):
        return False
    assert isinstance(root.op, te.PackOp)
    most = _PIECES * 8 * THREADS_PER_BLOCK
    return bool(root.op.by_k) and _FEWEST <= root.op.depth.value.data <= most


def _by_groups(root: Root, tasks: int) -> list[int]:
    """No row is seen by two rTasks."""
    return [1, 1, min(root.parallel[2], tasks), 1, 1]


def _work(part: Part) -> Work:
    """What one of the blocks does that share the rows."""
    op = part.root.op
    assert isinstance(op, te.PackOp)
    _, parts, _, _, _ = part.root.parallel
    terms, rows = part.elements / parts / _BLOCKS, part.sizes[2] * 8 / _BLOCKS
    each = part.loads + work(op=5 + 3 * parts)
    one = each * terms + work(byte=terms * _APART, round=_WAITS * rows)
    # Those of many groups come one after another.
    tasks = math.prod(part.grid)
    return one * (math.ceil(tasks * _BLOCKS / _SEATS) / math.ceil(tasks / _SEATS))


RKERNELS = [
    RKernel(
        "pack",
        "scaled_rows",
        "cuda",
        __name__,
        "pack_scaled_rows",
        legal=_legal,
        grid=_by_groups,
        threads=THREADS_PER_BLOCK,
        parameters=lambda root: {"BLOCKS": _BLOCKS},
        scratch_bytes=lambda root, parameters: 4 * 3 * _WARPS,
        work=_work,
        vectors=("X",),
        halves=True,
        clustered=True,
    )
]
