"""One outer row of a gradient of attention by one warp: what any can be computed by."""

from __future__ import annotations

import math

# A template that others call: no rKernel of its own.
RKERNELS = ()


def attention_gradient_row(OPERANDS, staged, place, b, i, lane):
    turned = place + SIZE
    first = turned + COLUMNS
    second = first + SIZE
    for e in range(lane, SIZE, 32):
        staged[place + e] = LOAD_X(OPERANDS, b, i, e) * SCALE
        staged[first + e] = FLOAT(0)
    for e in range(lane, COLUMNS, 32):
        staged[turned + e] = LOAD_XX(OPERANDS, b, i, e)
    for e in range(lane, SECOND, 32):
        staged[second + e] = FLOAT(0)
    largest = FLOAT(-math.inf)
    total = FLOAT(0)
    along = FLOAT(0)
    start = 0
    end = OTHERS
    if CAUSAL:
        if OF_KEYS:
            start = max(i - DIAGONAL, 0)
        else:
            end = max(min(i + DIAGONAL + 1, OTHERS), 0)
    for j in range(start, end):
        s = FLOAT(0)
        t = FLOAT(0)
        for e in range(lane, SIZE, 32):
            s += staged[place + e] * LOAD_Y(OPERANDS, b, j, e)
        for e in range(lane, COLUMNS, 32):
            t += staged[turned + e] * LOAD_YY(OPERANDS, b, j, e)
        s = warp_sum(s)
        t = warp_sum(t)
        if OF_KEYS:
            s = SCORE(OPERANDS, b, j, i, s)
            weight = EXP(s - LOAD_S(OPERANDS, b, j, SIZE))
            slope = weight * (t - LOAD_S(OPERANDS, b, j, SIZE + 1))
            for e in range(lane, SIZE, 32):
                staged[first + e] += slope * LOAD_Y(OPERANDS, b, j, e)
            for e in range(lane, COLUMNS, 32):
                staged[second + e] += weight * LOAD_YY(OPERANDS, b, j, e)
        else:
            s = SCORE(OPERANDS, b, i, j, s)
            # A NaN is not the largest; it makes the sum NaN.
            top = max(largest, s)
            shift = FLOAT(0) if top == FLOAT(-math.inf) else top
            factor = EXP(largest - shift)
            weight = EXP(s - shift)
            slope = weight * t
            total = total * factor + weight
            along = along * factor + slope
            largest = top
            for e in range(lane, SIZE, 32):
                y = LOAD_Y(OPERANDS, b, j, e)
                staged[first + e] = staged[first + e] * factor + slope * y
                staged[second + e] = staged[second + e] * factor + weight * y
    if OF_KEYS:
        for e in range(lane, SIZE, 32):
            STORE(OPERANDS, b, i, e, staged[first + e] * SCALE)
        for e in range(lane, COLUMNS, 32):
            STORE(OPERANDS, b, i, SIZE + e, staged[second + e])
    else:
        d = PORTION(along, total)
        for e in range(lane, SIZE, 32):
            left = staged[first + e] - d * staged[second + e]
            STORE(OPERANDS, b, i, e, PORTION(left, total) * SCALE)
        if lane == 0:
            STORE(OPERANDS, b, i, SIZE, largest + math.log(total))
            STORE(OPERANDS, b, i, SIZE + 1, d)
