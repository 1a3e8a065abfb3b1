"""How a block of a gradient of attention brings rows to shared memory.

What lies in memory is copied asynchronously, the rest is computed. The placeholders here are those of the
operand that a copy of the function is made for.
"""

from __future__ import annotations

# Templates that others call: no rKernels of their own.
RKERNELS = ()


def attention_gradient_rows(
    OPERANDS, staged, place, b, first, last, rows, depth, row, thread, threads, vector
):
    # Places are computed anew: the compiler would keep those of all copies in registers.
    thread = fixed(thread)
    # Behind the last row, and behind a row's end, there are zeros: a weight of zero times NaN is NaN.
    if COPIED and CHUNKS and vector:
        start = OFFSET(OPERANDS, b)
        for n in range(thread * 4, rows * depth, threads * 4):
            r, e = divide(n, depth)
            at = start + min(first + r, last - 1) * STEP + min(e, EXTENT - 4)
            inside = (first + r < last) & (e < EXTENT)
            copy_async(staged, place + r * row + e, SOURCE, at, 4, inside)
    elif COPIED:
        start = OFFSET(OPERANDS, b)
        for n in range(thread, rows * depth, threads):
            r, e = divide(n, depth)
            at = start + min(first + r, last - 1) * STEP + min(e, EXTENT - 1)
            inside = (first + r < last) & (e < EXTENT)
            copy_async(staged, place + r * row + e, SOURCE, at, 1, inside)
    else:
        for n in range(thread, rows * depth, threads):
            r, e = divide(n, depth)
            x = LOAD(OPERANDS, b, min(first + r, last - 1), min(e, EXTENT - 1))
            inside = first + r < last and e < EXTENT
            staged[place + r * row + e] = x if inside else FLOAT(0)


def attention_gradient_sums(OPERANDS, staged, place, b, first, last, rows, thread, threads):
    thread = fixed(thread)
    # Of each row both numbers behind its gradient, the first of all rows before the second.
    for n in range(thread, 2 * rows, threads):
        e, r = divide(n, rows)
        j = min(first + r, last - 1)
        if COPIED:
            at = OFFSET(OPERANDS, b) + j * STEP + EXTENT + e
            copy_async(staged, place + n, SOURCE, at, 1, first + r < last)
        else:
            staged[place + n] = LOAD(OPERANDS, b, j, EXTENT + e)
