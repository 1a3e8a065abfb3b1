"""top_k: where the first elements of a row, in order, are; of equals the first.

`top_k_rank`: each element counts how many of its row come before it, and that is its place. `top_k_sorted`: a
block keeps part of a row in shared memory, sorts runs of RUN elements, which are K or more, and of two runs
keeps the better half until one is left; that stays in front of the next part of the row. Sorting is Batcher's
bitonic network ("Sorting networks and their applications", 1968), runs meet as in A. Shanbhag, H. Pirk and
S. Madden, "Efficient Top-K Query Processing on GPUs" (2018).
"""

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256


def top_k_rank(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for e in range(r0 * N + thread_index(), r1 * N, THREADS):
        r, k = divide(e, N)
        x = LOAD(OPERANDS, r, k)
        place = 0
        for other in range(N):
            y = LOAD(OPERANDS, r, other)
            # NaN is larger than all else, and of equals the first comes first.
            more = y > x or (y != y and x == x)
            less = y < x or (x != x and y == y)
            sooner = more if LARGEST else less
            alike = y == x or (y != y and x != x)
            if sooner or (alike and other < k):
                place += 1
        if place < K:
            STORE(OPERANDS, r, place, int64(k))


def top_k_sorted(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    places = shared_of(int32(0), scratch)

    # Whether what lies at one place comes before what lies at another; N is no place, and last.
    def sooner(values, a, b):
        x, y, i, j = values[a], values[b], places[a], places[b]
        more = x > y or (x != x and y == y)
        less = x < y or (y != y and x == x)
        alike = x == y or (x != x and y != y)
        first = more if LARGEST else less
        return i < N and (j >= N or first or (alike and i < j))

    def exchanged(values, a, b):
        value, place = values[a], places[a]
        values[a] = values[b]
        places[a] = places[b]
        values[b] = value
        places[b] = place

    for r in range(r0, r1):
        values = shared_of(LOAD(OPERANDS, r, 0), scratch + 4 * HELD)
        start = 0
        while start < N:
            # The best so far are in front; at first nothing is.
            kept = RUN if start > 0 else 0
            at = kept + thread
            while at < HELD:
                k = start + at - kept
                places[at] = int32(min(k, N))
                values[at] = LOAD(OPERANDS, r, min(k, N - 1))
                at += THREADS
            start += HELD - kept
            cuda.syncthreads()
            size = 2
            while size <= RUN:
                stride = size // 2
                while stride > 0:
                    pair = thread
                    while pair < HELD // 2:
                        a = 2 * pair - pair % stride
                        b = a + stride
                        # Runs that meet go in opposite directions; at last each begins with its first.
                        down = size < RUN and a // size % 2 == 1
                        early = a if down else b
                        late = b if down else a
                        wrong = sooner(values, early, late)
                        if wrong:
                            exchanged(values, a, b)
                        pair += THREADS
                    cuda.syncthreads()
                    stride //= 2
                size *= 2
            runs = HELD // RUN
            while runs > 1:
                runs //= 2
                at = thread
                while at < runs * RUN:
                    # The first of one run against the last of the other: what is kept rises, then falls.
                    other = runs * RUN + at - at % RUN + (RUN - 1 - at % RUN)
                    wrong = sooner(values, other, at)
                    if wrong:
                        values[at] = values[other]
                        places[at] = places[other]
                    at += THREADS
                cuda.syncthreads()
                stride = RUN // 2
                while stride > 0:
                    pair = thread
                    while pair < runs * RUN // 2:
                        a = 2 * pair - pair % stride
                        b = a + stride
                        wrong = sooner(values, b, a)
                        if wrong:
                            exchanged(values, a, b)
                        pair += THREADS
                    cuda.syncthreads()
                    stride //= 2
        j = thread
        while j < K:
            STORE(OPERANDS, r, j, int64(places[j]))
            j += THREADS
        cuda.syncthreads()


_MOST_HELD = 4096
"""Elements that lie in shared memory at once."""


def _power(n: int) -> int:
    """The least power of two that is no less."""
    return 1 << max(n - 1, 0).bit_length()


def _sizes(root: Root) -> Parameters:
    """RUN: the length of runs that are sorted. HELD: elements in shared memory."""
    assert isinstance(root.op, te.TopKOp)
    run = max(_power(root.op.k.value.data), 2)
    return {"RUN": run, "HELD": max(min(_power(root.reduction[0]), _MOST_HELD), 2 * run)}


def _sortable(root: Root) -> bool:
    """What is asked for is at most half of what shared memory holds; places fit 32 bits."""
    if not isinstance(root.op, te.TopKOp) or _sizes(root)["HELD"] > _MOST_HELD:
        return False
    element = tensor_type(root.op.x).element_type
    known = isinstance(element, Float32Type | Float64Type | IntegerType)
    return known and root.reduction[0] < 1 << 31


def _held_bytes(root: Root, sizes: Parameters) -> int:
    return (8 + 4) * sizes["HELD"]


def _rank_work(part: Part) -> Work:
    pairs = part.rows * part.terms * part.terms
    rounds = part.rounds(part.rows * part.terms, part.threads)
    waits = work(chain=part.terms, round=1) * rounds
    return waits + (part.loads + work(scalar=6)) * pairs + part.store * part.elements


def _sorted_work(part: Part) -> Work:
    sizes = _sizes(part.root)
    run, held = sizes["RUN"], sizes["HELD"]
    turns = max(1, -(-(part.terms - held) // (held - run)) + 1)
    of_run = run.bit_length() - 1
    meetings = (held // run).bit_length() - 1
    barriers = of_run * (of_run + 1) / 2 + meetings * (1 + of_run)
    # Of what meets half is left each time: twice the first of it in all.
    pairs = held / 2 * of_run * (of_run + 1) / 2 + held * (1 + of_run / 2)
    each = work(barrier=barriers, round=1, scalar=20 * pairs) * (part.rows * turns)
    return each + part.loads * (part.rows * part.terms) + part.store * part.elements


RKERNELS = [
    RKernel("top_k", "rank", "cuda", __name__, "top_k_rank", work=_rank_work),
    RKernel(
        "top_k",
        "sorted",
        "cuda",
        __name__,
        "top_k_sorted",
        legal=_sortable,
        parameters=_sizes,
        scratch_bytes=_held_bytes,
        threads=THREADS_PER_BLOCK,
        work=_sorted_work,
    ),
]
