"""top_k: each element counts how many of its row come before it, and that is its place."""

from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


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


def _rank_work(part: Part) -> Work:
    pairs = part.rows * part.terms * part.terms
    rounds = part.rounds(part.rows * part.terms, part.threads)
    waits = work(chain=part.terms, round=1) * rounds
    return waits + (part.loads + work(scalar=6)) * pairs + part.store * part.elements


RKERNELS = [RKernel("top_k", "rank", "cuda", __name__, "top_k_rank", work=_rank_work)]
