"""top_k: where the first elements of a row, in order, are; of equals the first.

`top_k_insert` keeps the first so far in order, and looks at each element once: most are behind the last of
them. `top_k_merge` sorts the whole row, by runs twice as long each time.
"""

import math

from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def top_k_insert(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    first = POINTER(scratch)
    for r in range(r0, r1):
        last = LOAD(OPERANDS, r, 0)
        first[0] = 0
        count = 1
        for k in range(1, N):
            x = LOAD(OPERANDS, r, k)
            # NaN is larger than all else, and of equals the one before stays before.
            more = x > last or (x != x and last == last)
            less = x < last or (last != last and x == x)
            sooner = more if LARGEST else less
            if sooner or count < K:
                at = min(count, K - 1)
                while at > 0:
                    y = LOAD(OPERANDS, r, first[at - 1])
                    more = x > y or (x != x and y == y)
                    less = x < y or (y != y and x == x)
                    sooner = more if LARGEST else less
                    if not sooner:
                        break
                    first[at] = first[at - 1]
                    at -= 1
                first[at] = k
                count = min(count + 1, K)
                last = LOAD(OPERANDS, r, first[count - 1])
        for j in range(K):
            STORE(OPERANDS, r, j, first[j])


def top_k_merge(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    order = int32p(scratch)
    for r in range(r0, r1):
        for k in range(N):
            order[k] = k
        here = 0
        there = N
        width = 1
        while width < N:
            for start in range(0, N, 2 * width):
                left = start
                middle = min(start + width, N)
                right = middle
                end = min(start + 2 * width, N)
                for at in range(start, end):
                    sooner = left == middle
                    if left < middle and right < end:
                        x = LOAD(OPERANDS, r, order[here + right])
                        y = LOAD(OPERANDS, r, order[here + left])
                        more = x > y or (x != x and y == y)
                        less = x < y or (y != y and x == x)
                        sooner = more if LARGEST else less
                    if sooner:
                        order[there + at] = order[here + right]
                        right += 1
                    else:
                        order[there + at] = order[here + left]
                        left += 1
            here = N - here
            there = N - there
            width *= 2
        for j in range(K):
            STORE(OPERANDS, r, j, order[here + j])


_MOST = 1 << 24
"""Elements of a row that are sorted: two orders of them, in 32 bits, are in scratch."""


def _fits(root: Root) -> bool:
    return root.reduction[0] <= _MOST


def _insert_work(part: Part) -> Work:
    """Of a row in random order, element n is among the first k so far by the chance k/n."""
    k, n = part.width, part.terms
    inserted = k * (1 + math.log(n / k))
    each = (part.loads + work(scalar=4)) * n + work(chain=4 * inserted * (2 + k / 2), row=1)
    return each * part.rows + part.store * part.elements


def _merge_work(part: Part) -> Work:
    """Which of two elements comes first is not foreseen."""
    n = part.terms
    each = (part.loads * 2 + work(chain=20)) * (n * math.ceil(math.log2(max(n, 2)))) + work(row=n)
    return each * part.rows + part.store * part.elements


def _first_so_far(root: Root, parameters: Parameters) -> int:
    return 8 * root.parallel[-1]


def _two_orders(root: Root, parameters: Parameters) -> int:
    return 8 * root.reduction[0]


RKERNELS = [
    RKernel(
        "top_k",
        "insert",
        "cpu",
        __name__,
        "top_k_insert",
        work=_insert_work,
        scratch_bytes=_first_so_far,
    ),
    RKernel(
        "top_k",
        "merge",
        "cpu",
        __name__,
        "top_k_merge",
        legal=_fits,
        work=_merge_work,
        scratch_bytes=_two_orders,
    ),
]
