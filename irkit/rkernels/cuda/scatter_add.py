"""scatter_add: a block of places has its sums in shared memory while all indices go by.

Threads look at indices side by side, a list of them at a time, and say by ballot which name a place of the
block: where an index stands in the list of these is how many there are before it. Then each thread goes
through the list for the sums that are its own: what it adds is loaded for many of them before the first is
added, and a sum is in a register as long as its place does not change. So an element is summed in the order
of the indices, without atomics, and has the same bits in every run.
"""

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.scatter_add import updates_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def scatter_add_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    warp, lane = thread // 32, thread % 32
    acc = shared_of(FLOAT(0), scratch)
    named = shared_i32(scratch + SUMS)
    counts = shared_i32(scratch + SUMS + 4 * LISTED)
    places = cuda.local.array(PIECE, int32)
    hits = cuda.local.array(PIECE, int32)
    takes = cuda.local.array(AHEAD, int32)
    updates = cuda.local.array(AHEAD, FLOAT)
    # Thread group g has every GROUPS-th place of the block, thread c of it every THREADS-th column.
    g, c0 = divide(thread, COLUMNS)
    for left in range(j0, j1, COLUMNS):
        width = min(COLUMNS, j1 - left)
        for top in range(r0, r1, BLOCK):
            count = min(BLOCK, r1 - top)
            if g < GROUPS:
                for v in range(g, count, GROUPS):
                    for c in range(c0, width, THREADS):
                        acc[v * COLUMNS + c] = INIT(OPERANDS, top + v, left + c)
            for base in range(0, N, LISTED):
                for p in range(PIECE):
                    v = int32(INDEX(OPERANDS, min(base + p * THREADS + thread, N - 1)) - top)
                    inside = base + p * THREADS + thread < N and v >= 0 and v < count
                    places[p] = v if inside else int32(-1)
                for p in range(PIECE):
                    hits[p] = cuda.ballot_sync(0xFFFFFFFF, places[p] >= 0)
                    if lane == 0:
                        counts[p * WARPS + warp] = cuda.popc(hits[p])
                cuda.syncthreads()
                # Lane l of every warp adds up the l-th EACH counts, then those of the lanes before it.
                own = int32(0)
                for e in range(lane * EACH, min((lane + 1) * EACH, PIECE * WARPS)):
                    own += counts[e]
                upto, far = own, 1
                while far < 32:
                    other = cuda.shfl_up_sync(0xFFFFFFFF, upto, far)
                    if lane >= far:
                        upto += other
                    far *= 2
                total = cuda.shfl_sync(0xFFFFFFFF, upto, 31)
                for p in range(PIECE):
                    e = p * WARPS + warp
                    place = cuda.shfl_sync(0xFFFFFFFF, upto - own, e // EACH)
                    for before in range(e // EACH * EACH, e):
                        place += counts[before]
                    if places[p] >= 0:
                        place += cuda.popc(hits[p] & ((1 << lane) - 1))
                        named[place] = places[p] * LISTED + p * THREADS + thread
                cuda.syncthreads()
                if g < GROUPS:
                    for c in range(c0, width, THREADS):
                        at, sum = int32(-1), FLOAT(0)
                        for k in range(0, total, AHEAD):
                            for u in range(AHEAD):
                                v, n = divide(named[min(k + u, total - 1)], LISTED)
                                takes[u] = int32(-1)
                                if k + u < total and v % GROUPS == g:
                                    takes[u] = int32(v)
                                    updates[u] = UPDATE(OPERANDS, base + n, left + c)
                            for u in range(AHEAD):
                                if takes[u] >= 0:
                                    if takes[u] != at:
                                        if at >= 0:
                                            acc[at * COLUMNS + c] = sum
                                        at = takes[u]
                                        sum = acc[at * COLUMNS + c]
                                    sum += updates[u]
                        if at >= 0:
                            acc[at * COLUMNS + c] = sum
            if g < GROUPS:
                for v in range(g, count, GROUPS):
                    for c in range(c0, width, THREADS):
                        STORE(OPERANDS, top + v, left + c, acc[v * COLUMNS + c])


THREADS_PER_BLOCK, TOGETHER, WIDEST, LISTED, AHEAD = 256, 1 << 12, 1 << 10, 1 << 11, 16
"""Sums in shared memory at a time, and of one place; indices that are looked at together, and additions whose
numbers are loaded together."""
WARPS = THREADS_PER_BLOCK // 32


def _parameters(root: Root) -> dict[str, int]:
    places, width = root.parallel
    columns = min(width, WIDEST)
    block = min(places, TOGETHER // columns)
    piece = max(1, -(-min(LISTED, updates_of(root)) // THREADS_PER_BLOCK))
    return {
        "AHEAD": AHEAD,
        "BLOCK": block,
        "COLUMNS": columns,
        "GROUPS": max(1, min(block, THREADS_PER_BLOCK // columns)),
        "EACH": -(-piece * WARPS // 32),
        "LISTED": piece * THREADS_PER_BLOCK,
        "PIECE": piece,
        "SUMS": -(-block * columns * _itemsize(root) // 16) * 16,
        "WARPS": WARPS,
    }


def _itemsize(root: Root) -> int:
    assert root.value is not None
    return numpy_dtype(tensor_type(root.value).element_type).itemsize


def _scratch(root: Root, parameters: Parameters) -> int:
    return parameters["SUMS"] + 4 * parameters["PIECE"] * (THREADS_PER_BLOCK + WARPS)


def _work(part: Part) -> Work:
    """Each block of sums looks at all indices; what is then added is as much as if they were spread evenly,
    which takes a round for each AHEAD of the list."""
    (places, width), known = part.sizes, _parameters(part.root)
    count = updates_of(part.root)
    passes = part.rounds(places, known["BLOCK"]) * part.rounds(width, known["COLUMNS"])
    lists = passes * part.rounds(count, known["LISTED"])
    here = count * places / part.root.parallel[0]
    looks = work(gather=passes * count, scalar=4 * passes * count)
    looks += work(barrier=2, shuffle=6 + known["PIECE"], round=1) * lists
    rounds = max(lists, here / AHEAD) * part.rounds(known["COLUMNS"], THREADS_PER_BLOCK)
    added = work(op=width * part.lanes, byte=4 * width * part.lanes) * here + work(round=1) * rounds
    return looks + added + work(chain=here / known["GROUPS"]) + part.store * part.elements


RKERNELS = [
    RKernel(
        "scatter_add",
        "block",
        "cuda",
        __name__,
        "scatter_add_block",
        work=_work,
        parameters=_parameters,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
    )
]
