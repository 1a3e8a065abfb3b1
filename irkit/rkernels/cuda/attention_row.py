"""One row of an attention by one warp, key after key: what any row can be computed by."""

from __future__ import annotations

import math

# A template that others call: no rKernel of its own.
RKERNELS = ()


def attention_row(OPERANDS, staged, place, b, i, lane):
    query = place
    sums = query + SIZE
    for e in range(lane, SIZE, 32):
        staged[query + e] = LOAD_Q(OPERANDS, b, i, e) * SCALE
    for e in range(lane, COLUMNS, 32):
        staged[sums + e] = FLOAT(0)
    largest = FLOAT(-math.inf)
    total = FLOAT(0)
    ends = max(min(i + DIAGONAL + 1, KEYS), 0) if CAUSAL else KEYS
    for j in range(ends):
        s = FLOAT(0)
        for e in range(lane, SIZE, 32):
            s += staged[query + e] * LOAD_K(OPERANDS, b, j, e)
        s = warp_sum(s)
        s = SCORE(OPERANDS, b, i, j, s)
        top = max(largest, s)
        shift = FLOAT(0) if top == FLOAT(-math.inf) else top
        factor = EXP(largest - shift)
        power = EXP(s - shift)
        total = total * factor + power
        largest = top
        for e in range(lane, COLUMNS, 32):
            value = power * LOAD_V(OPERANDS, b, j, e)
            staged[sums + e] = staged[sums + e] * factor + value
    for e in range(lane, COLUMNS, 32):
        STORE(OPERANDS, b, i, e, PORTION(staged[sums + e], total))
    if PARTED and lane == 0:
        STORE(OPERANDS, b, i, COLUMNS, largest + math.log(total))
