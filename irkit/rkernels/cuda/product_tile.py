"""How the sums of a tile leave shared memory: what products on tensor cores end with."""

from __future__ import annotations

import math

# A template that others call: no rKernel of its own.
RKERNELS = ()


def leave_tile(OPERANDS, staged, place, threads, sizes, first, ends, fours, anew, unsure, above=0):
    """Stores the sums of BM × BN `sizes` that lie at staged[place], rows or, if TRANSPOSED, columns apart.

    `threads`: which of how many this one is; `first`: b, l and the tile's first row and column; `ends`: the
    row behind the last, the first column, the column behind the last. `fours`: whether four that lie side by
    side may be stored at once. Elements are summed once more, in float32, where `anew` is 1 all of them,
    where it is 2 those of a size below `unsure` or not finite: seldom any, which is asked of the sums while
    they are in registers (`any_unsure`). So many rows of the tile as `above` says, the first, are another
    rTask's.
    """
    thread, count = threads
    high, wide = sizes
    b, lead, m, c = first
    m1, c0, c1 = ends

    def exact(y, x):
        found = FLOAT(0)
        column = COLUMN(b, lead, c + x)
        for k in range(K):
            step = STEP(k)
            value = B[AT(column, step)]
            value = value if INSIDE(column, step) else FLOAT(0)
            found += A[(b * M + m + y) * K + k] * value
        return found

    # Where a four of sums, or one, lies in the tile, and in shared memory.
    def where(i):
        at = (thread + i * count) * (1 + 3 * fours * RUN)
        if TRANSPOSED:
            x, y = divide(at, high)
        else:
            y, x = divide(at, wide)
        return y, x

    def lies(y, x):
        return place + (x * (high + 4) + y if TRANSPOSED else y * (wide + 8) + x)

    def inside(y, x):
        return y >= above and m + y < m1 and c + x < c1 and c + x >= c0

    # Of a four outside the nearest within is read.
    def loaded(i):
        y, x = where(i)
        near_m = min(m + y, m1 - 1 - 3 * TRANSPOSED)
        if above:
            near_m = max(near_m, m + above)
        near_c = max(min(c + x, c1 - 4 + 3 * TRANSPOSED), c0)
        return LOAD_RUN(OPERANDS, b, near_m, lead, near_c)

    def stored(i, found):
        y, x = where(i)
        if i < high * wide // (4 * count) and inside(y, x):
            s0, s1, s2, s3 = load4(staged, lies(y, x))
            STORE_RUN(OPERANDS, b, m + y, lead, c + x, s0, s1, s2, s3, found)

    if anew == 2:
        # A thread's own: no other stores them.
        for i in range(high * wide // (count * (1 + 3 * fours * RUN))):
            y, x = where(i)
            for e in range(1 + 3 * fours * RUN):
                total = staged[lies(y, x) + e]
                if inside(y, x) and not (unsure <= abs(total) < math.inf):
                    found = exact(y + e * TRANSPOSED, x + e * (1 - TRANSPOSED))
                    staged[lies(y, x) + e] = found
    if fours * RUN:
        # What eight of them read is on its way together.
        for i in range(0, high * wide // (4 * count), 8):
            one, two, three, four = loaded(i), loaded(i + 1), loaded(i + 2), loaded(i + 3)
            five, six, seven = loaded(i + 4), loaded(i + 5), loaded(i + 6)
            eight = loaded(i + 7)
            stored(i, one)
            stored(i + 1, two)
            stored(i + 2, three)
            stored(i + 3, four)
            stored(i + 4, five)
            stored(i + 5, six)
            stored(i + 6, seven)
            stored(i + 7, eight)
    else:
        for i in range(high * wide // count):
            y, x = where(i)
            if inside(y, x):
                total = exact(y, x) if anew == 1 else staged[lies(y, x)]
                start = INIT(OPERANDS, b, m + y, lead, c + x)
                STORE(OPERANDS, b, m + y, lead, c + x, total + start)
