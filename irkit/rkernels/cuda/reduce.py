"""Reductions and pooling: one output per thread, per warp, or per block at a time; or a column for each lane.

Per warp, per block and by columns, the terms of one output are combined in another order, and `INIT` joins
last; so COMBINE must be associative and commutative, up to rounding.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64

from irkit.dialects.linalg_generic import maps
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import is_integer, tensor_type
from irkit.rkernels.fused_work import step
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256


def _terms(root: Root) -> int:
    """Terms of one output."""
    return math.prod(root.reduction)


def _long(root: Root) -> bool:
    """Enough terms for a warp to share, and sums that its shuffles can move, as they are or as integers."""
    assert root.value is not None
    element = tensor_type(root.value).element_type
    return _terms(root) >= 64 and (is_integer(element) or element in (f32, f64))


def _very_long(root: Root) -> bool:
    """Enough terms for a block to share."""
    return _terms(root) >= 1024


def _across(root: Root) -> bool:
    """Whether outputs lie side by side in memory where terms do not: sums of columns."""
    if not root.parallel or root.parallel[-1] == 1 or not root.reduction:
        return False
    op, column = root.chain[-1], len(root.parallel) - 1
    moves = [(step(m, column), step(m, column + len(root.reduction))) for m in maps(op)]
    return any(move == 1 and term > 1 for move, term in moves[: len(op.inputs)])


APART_BYTES = 18.0
"""What a load takes that each lane of a warp has elsewhere, in bytes: so many of a warp's come one by one."""
_BARRIERS = 10
"""At which a block meets for one output."""
_TOGETHER = {16: 8, 8: 6, 4: 4, 1: 2}
"""Terms that a lane has under way together → what they take, in those that wait for one another."""


def _chain(terms: int, depths: Sequence[int]) -> int:
    """What a lane's terms take, so many under way together, and at last one by one."""
    chain = 0
    for depth in (*depths, 1):
        turns, terms = divmod(terms, depth)
        chain += turns * _TOGETHER[depth]
    return chain


def _chain_of_block(terms: int) -> int:
    return _chain(math.ceil(terms / THREADS_PER_BLOCK), (16, 8, 4))


def waits_of_block(terms: int) -> Work:
    """What an output of `reduce.block` waits for, of so many terms."""
    return work(chain=_chain_of_block(terms), barrier=_BARRIERS)


def _work(at_once: int, lanes: int, shuffles: int, barriers: int):
    """`at_once` outputs together, `lanes` terms of each, then joined."""

    def counted(part: Part) -> Work:
        chain = math.ceil(part.terms / lanes)
        if lanes == 32:
            # Eights, and what is left.
            chain = _chain(chain, (8,))
        elif lanes == THREADS_PER_BLOCK:
            chain = _chain_of_block(part.terms)
        waits = work(chain=chain, shuffle=shuffles, barrier=barriers) * part.rounds(
            part.elements, at_once
        )
        apart = APART_BYTES if lanes > 1 and _across(part.root) else 0.0
        term = part.term + work(byte=apart * part.term_loads)
        return waits + term * (part.elements * part.terms) + part.store * part.elements

    return counted


COLUMNS = 32
"""Columns that a block sums at a time: a lane for each."""


def _turns(part: Part) -> float:
    """32 columns of a row each."""
    return part.rows * part.rounds(part.width, COLUMNS)


def waits_of_columns(terms: int) -> Work:
    """What a turn of `reduce.columns` waits for, of columns of so many terms: a warp has one of 8 parts."""
    chain = _chain(math.ceil(terms / 8), (16, 8, 4))
    # Eight sums of what eight warps found wait for one another, not for memory.
    return work(chain=chain + 4, barrier=2)


def _work_of_columns(part: Part) -> Work:
    waits = waits_of_columns(part.terms) * _turns(part)
    return waits + part.term * (part.elements * part.terms) + part.store * part.elements


def reduce_thread(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element = THREAD
    while element < count:
        r, j = divide(element, width)
        acc = INIT(OPERANDS, r0 + r, j0 + j)
        for k0 in range(K0):
            for k1 in range(K1):
                for k2 in range(K2):
                    acc = COMBINE(acc, TERM(OPERANDS, r0 + r, j0 + j, k0, k1, k2))
        STORE(OPERANDS, r0 + r, j0 + j, acc)
        element += THREADS


def reduce_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    warp, lane = divide(THREAD, 32)
    element = warp

    def term(r, j, k):
        k0, inner = divide(k, K1 * K2)
        k1, k2 = divide(inner, K2)
        return FLOAT(TERM(OPERANDS, r, j, k0, k1, k2))

    # Terms are on their way together, and meet in pairs.
    def two(r, j, k):
        one = term(r, j, k)
        other = term(r, j, k + 32)
        return COMBINE(one, other)

    def four(r, j, k):
        one = two(r, j, k)
        other = two(r, j, k + 64)
        return COMBINE(one, other)

    while element < count:
        row, column = divide(element, width)
        r = r0 + row
        j = j0 + column
        # A lane without a term takes the first one, and nobody takes that lane's result.
        k = lane if lane < K0 * K1 * K2 else 0
        acc = term(r, j, k)
        k = lane + 32
        while k + 7 * 32 < K0 * K1 * K2:
            first = four(r, j, k)
            second = four(r, j, k + 128)
            acc = COMBINE(acc, COMBINE(first, second))
            k += 256
        while k < K0 * K1 * K2:
            first = term(r, j, k)
            acc = COMBINE(acc, first)
            k += 32
        distance = 16
        while distance > 0:
            other = FLOAT(cuda.shfl_down_sync(0xFFFFFFFF, SHUFFLED(acc), distance))
            if lane + distance < min(32, K0 * K1 * K2):
                acc = COMBINE(acc, other)
            distance >>= 1
        if lane == 0:
            STORE(OPERANDS, r, j, COMBINE(INIT(OPERANDS, r, j), acc))
        element += THREADS // 32


def reduce_columns(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    warps = THREADS // 32
    partial = shared_of(FLOAT(0), scratch)

    def term(r, j, k):
        k0, inner = divide(k, K1 * K2)
        k1, k2 = divide(inner, K2)
        return FLOAT(TERM(OPERANDS, r, j, k0, k1, k2))

    # Terms are on their way together, and meet in pairs.
    def two(r, j, k):
        one = term(r, j, k)
        other = term(r, j, k + warps)
        return COMBINE(one, other)

    def four(r, j, k):
        one = two(r, j, k)
        other = two(r, j, k + 2 * warps)
        return COMBINE(one, other)

    def eight(r, j, k):
        one = four(r, j, k)
        other = four(r, j, k + 4 * warps)
        return COMBINE(one, other)

    # A turn is of 32 columns of a row.
    across = divide(j1 - j0 + 31, 32)[0]
    following = RANK
    while following < (r1 - r0) * across:
        turn = following
        following += RANKS
        row, piece = divide(turn, across)
        r = r0 + row
        start = j0 + 32 * piece
        j = min(start + lane, j1 - 1)
        # A warp without a term takes the first one, and nobody takes its sums.
        k = warp if warp < K0 * K1 * K2 else 0
        acc = term(r, j, k)
        k = warp + warps
        while k + 15 * warps < K0 * K1 * K2:
            first = eight(r, j, k)
            second = eight(r, j, k + 8 * warps)
            acc = COMBINE(acc, COMBINE(first, second))
            k += 16 * warps
        if k + 7 * warps < K0 * K1 * K2:
            first = eight(r, j, k)
            acc = COMBINE(acc, first)
            k += 8 * warps
        if k + 3 * warps < K0 * K1 * K2:
            first = four(r, j, k)
            acc = COMBINE(acc, first)
            k += 4 * warps
        while k < K0 * K1 * K2:
            first = term(r, j, k)
            acc = COMBINE(acc, first)
            k += warps
        partial[warp * 32 + lane] = acc
        cuda.syncthreads()
        if warp == 0 and start + lane < j1:
            for other in range(1, min(warps, K0 * K1 * K2)):
                acc = COMBINE(acc, partial[other * 32 + lane])
            STORE(OPERANDS, r, j, COMBINE(INIT(OPERANDS, r, j), acc))
        cuda.syncthreads()


def reduce_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    partial = shared_of(FLOAT(0), scratch)
    width = j1 - j0

    def term(r, j, k):
        k0, inner = divide(k, K1 * K2)
        k1, k2 = divide(inner, K2)
        return FLOAT(TERM(OPERANDS, r, j, k0, k1, k2))

    # Terms are on their way together, and meet in pairs.
    def two(r, j, k):
        one = term(r, j, k)
        other = term(r, j, k + THREADS)
        return COMBINE(one, other)

    def four(r, j, k):
        one = two(r, j, k)
        other = two(r, j, k + 2 * THREADS)
        return COMBINE(one, other)

    def eight(r, j, k):
        one = four(r, j, k)
        other = four(r, j, k + 4 * THREADS)
        return COMBINE(one, other)

    element = RANK
    while element < (r1 - r0) * width:
        row, column = divide(element, width)
        r = r0 + row
        j = j0 + column
        if thread < K0 * K1 * K2:
            acc = term(r, j, thread)
            k = thread + THREADS
            while k + 15 * THREADS < K0 * K1 * K2:
                first = eight(r, j, k)
                second = eight(r, j, k + 8 * THREADS)
                acc = COMBINE(acc, COMBINE(first, second))
                k += 16 * THREADS
            if k + 7 * THREADS < K0 * K1 * K2:
                first = eight(r, j, k)
                acc = COMBINE(acc, first)
                k += 8 * THREADS
            if k + 3 * THREADS < K0 * K1 * K2:
                first = four(r, j, k)
                acc = COMBINE(acc, first)
                k += 4 * THREADS
            while k < K0 * K1 * K2:
                first = term(r, j, k)
                acc = COMBINE(acc, first)
                k += THREADS
            partial[thread] = acc
        cuda.syncthreads()
        # THREADS is a power of two.
        distance = THREADS // 2
        while distance > 0:
            if thread < distance and thread + distance < min(THREADS, K0 * K1 * K2):
                partial[thread] = COMBINE(partial[thread], partial[thread + distance])
            cuda.syncthreads()
            distance >>= 1
        if thread == 0:
            STORE(OPERANDS, r, j, COMBINE(INIT(OPERANDS, r, j), partial[0]))
        cuda.syncthreads()
        element += RANKS


def _many_columns(root: Root) -> bool:
    return _across(root) and _terms(root) >= 16


RKERNELS = [
    RKernel(
        "reduce",
        "columns",
        "cuda",
        __name__,
        "reduce_columns",
        legal=_many_columns,
        work=_work_of_columns,
        reassociates=True,
        scratch_bytes=8 * THREADS_PER_BLOCK,
        threads=THREADS_PER_BLOCK,
        spreads=lambda part: _turns(part) * THREADS_PER_BLOCK,
    ),
] + [
    RKernel(
        family,
        variant,
        "cuda",
        __name__,
        f"reduce_{variant}",
        legal=legal,
        work=_work(at_once, lanes, shuffles, barriers),
        reassociates=variant != "thread",
        aligns=variant == "thread",
        scratch_bytes=8 * THREADS_PER_BLOCK if variant == "block" else 0,
        threads=THREADS_PER_BLOCK if variant == "block" else None,
        spreads=lambda part, lanes=lanes: part.elements * lanes,
    )
    for family in ("reduce", "pool")
    for variant, legal, at_once, lanes, shuffles, barriers in (
        ("thread", lambda root: True, 256, 1, 0, 0),
        ("warp", _long, 8, 32, 5, 0),
        ("block", _very_long, 1, THREADS_PER_BLOCK, 0, _BARRIERS),
    )
]
