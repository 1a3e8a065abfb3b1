"""Gradients of attention: warps with a few outer rows each, a block of inner ones at a time.

A block keeps outer rows in shared memory, HELD for each warp, and brings inner ones there, 32 * ACROSS at a
time. A lane has a score of each of its warp's rows with ACROSS inner rows; then lanes share the elements of
the sums out, and weights come to them from the lane that has them. The gradient of a query is scale · (sum of
P T k - d · sum of P k): both sums go along with the softmax's, scaled down where a larger score turns up, so
that one pass makes it, and d too. That of a key and a value reads what came of this of each row. After
T. Dao, FlashAttention-2, arXiv:2307.08691, of whose two passes backward each is one op here; M. Milakov and
N. Gimelshein, arXiv:1805.02867.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.attention_gradient import Sides, met, read, score
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256
_WARPS = THREADS_PER_BLOCK // 32


def attention_gradient_rows(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    staged = shared_of(FLOAT(0), scratch)
    inner = HEIGHT * (SIZE + COLUMNS)
    own = warp * HELD * (SIZE + COLUMNS)
    weights = cuda.local.array(HELD * ACROSS, FLOAT)
    slopes = cuda.local.array(HELD * ACROSS, FLOAT)
    largest = cuda.local.array(HELD, FLOAT)
    totals = cuda.local.array(HELD, FLOAT)
    along = cuda.local.array(HELD, FLOAT)
    first = cuda.local.array(HELD * PIECES, FLOAT)
    second = cuda.local.array(HELD * SECOND_PIECES, FLOAT)
    for b in range(b0, b1):
        for i in range(i0, i1, HEIGHT):
            # What was read of the rows before is read by all.
            cuda.syncthreads()
            for n in range(thread, HEIGHT * SIZE, THREADS):
                r, e = divide(n, SIZE)
                x = LOAD_X(OPERANDS, b, min(i + r, i1 - 1), e)
                staged[r * (SIZE + COLUMNS) + e] = x * SCALE
            for n in range(thread, HEIGHT * COLUMNS, THREADS):
                r, e = divide(n, COLUMNS)
                x = LOAD_XX(OPERANDS, b, min(i + r, i1 - 1), e)
                staged[r * (SIZE + COLUMNS) + SIZE + e] = x
            for r in range(HELD):
                largest[r] = FLOAT(-math.inf)
                totals[r] = FLOAT(0)
                along[r] = FLOAT(0)
            for n in range(HELD * PIECES):
                first[n] = FLOAT(0)
            for n in range(HELD * SECOND_PIECES):
                second[n] = FLOAT(0)
            start = 0
            end = OTHERS
            if CAUSAL:
                # Query i sees keys to i + DIAGONAL: key j is seen by queries from j - DIAGONAL on.
                if OF_KEYS:
                    start = max(i - DIAGONAL, 0)
                else:
                    end = max(min(min(i + HEIGHT, i1) + DIAGONAL, OTHERS), 0)
            for k in range(start, end, 32 * ACROSS):
                cuda.syncthreads()
                if STAGED:
                    for n in range(thread, 32 * ACROSS * SIZE, THREADS):
                        j, e = divide(n, SIZE)
                        y = LOAD_Y(OPERANDS, b, min(k + j, OTHERS - 1), e)
                        staged[inner + j * STRIDE + e] = y
                    for n in range(thread, 32 * ACROSS * COLUMNS, THREADS):
                        j, e = divide(n, COLUMNS)
                        y = LOAD_YY(OPERANDS, b, min(k + j, OTHERS - 1), e)
                        staged[inner + j * STRIDE + SIZE + e] = y
                cuda.syncthreads()
                for n in range(HELD * ACROSS):
                    weights[n] = FLOAT(0)
                    slopes[n] = FLOAT(0)
                for e in range(SIZE):
                    for a in range(ACROSS):
                        at = inner + (a * 32 + lane) * STRIDE + e
                        below = min(k + a * 32 + lane, OTHERS - 1)
                        y = staged[at] if STAGED else LOAD_Y(OPERANDS, b, below, e)
                        for r in range(HELD):
                            weights[r * ACROSS + a] += staged[own + r * (SIZE + COLUMNS) + e] * y
                for e in range(COLUMNS):
                    for a in range(ACROSS):
                        at = inner + (a * 32 + lane) * STRIDE + SIZE + e
                        below = min(k + a * 32 + lane, OTHERS - 1)
                        y = staged[at] if STAGED else LOAD_YY(OPERANDS, b, below, e)
                        for r in range(HELD):
                            slopes[r * ACROSS + a] += (
                                staged[own + r * (SIZE + COLUMNS) + SIZE + e] * y
                            )
                for a in range(ACROSS):
                    j = k + a * 32 + lane
                    there = min(j, OTHERS - 1)
                    if OF_KEYS:
                        sum_of_weights = LOAD_S(OPERANDS, b, there, SIZE)
                        sum_of_slopes = LOAD_S(OPERANDS, b, there, SIZE + 1)
                    for r in range(HELD):
                        i_own = min(i + warp * HELD + r, i1 - 1)
                        query = there if OF_KEYS else i_own
                        key = i_own if OF_KEYS else there
                        s = weights[r * ACROSS + a]
                        if MASKED:
                            s = SCORE(OPERANDS, b, query, key, s)
                        seen = j < end
                        if CAUSAL:
                            seen = seen and key <= query + DIAGONAL
                        # What is not seen has no weight, whatever its slope.
                        t = slopes[r * ACROSS + a] if seen else FLOAT(0)
                        if OF_KEYS:
                            p = EXP(s - sum_of_weights) if seen else FLOAT(0)
                            weights[r * ACROSS + a] = p
                            t = p * (t - sum_of_slopes) if seen else FLOAT(0)
                        else:
                            weights[r * ACROSS + a] = s if seen else FLOAT(-math.inf)
                        slopes[r * ACROSS + a] = t
                if not OF_KEYS:
                    for r in range(HELD):
                        # A NaN is not the largest; it makes the sum NaN.
                        top = weights[r * ACROSS]
                        for a in range(1, ACROSS):
                            top = max(top, weights[r * ACROSS + a])
                        top = max(largest[r], warp_largest(top))
                        shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                        factor = EXP(largest[r] - shift)
                        largest[r] = top
                        total = FLOAT(0)
                        sloped = FLOAT(0)
                        for a in range(ACROSS):
                            p = EXP(weights[r * ACROSS + a] - shift)
                            weights[r * ACROSS + a] = p
                            slopes[r * ACROSS + a] = p * slopes[r * ACROSS + a]
                            total += p
                            sloped += slopes[r * ACROSS + a]
                        totals[r] = totals[r] * factor + warp_sum(total)
                        along[r] = along[r] * factor + warp_sum(sloped)
                        for m in range(PIECES):
                            first[r * PIECES + m] = first[r * PIECES + m] * factor
                        for m in range(SECOND_PIECES):
                            at = r * SECOND_PIECES + m
                            second[at] = second[at] * factor
                for a in range(ACROSS):
                    for n in range(32):
                        row = inner + (a * 32 + n) * STRIDE
                        below = min(k + a * 32 + n, OTHERS - 1)
                        for m in range(PIECES):
                            e = min(m * 32 + lane, SIZE - 1)
                            y = staged[row + e] if STAGED else LOAD_Y(OPERANDS, b, below, e)
                            for r in range(HELD):
                                w = cuda.shfl_sync(0xFFFFFFFF, slopes[r * ACROSS + a], n)
                                first[r * PIECES + m] += w * y
                                if not OF_KEYS:
                                    w = cuda.shfl_sync(0xFFFFFFFF, weights[r * ACROSS + a], n)
                                    second[r * PIECES + m] += w * y
                        if OF_KEYS:
                            for m in range(SECOND_PIECES):
                                e = min(m * 32 + lane, COLUMNS - 1)
                                y = (
                                    staged[row + SIZE + e]
                                    if STAGED
                                    else LOAD_YY(OPERANDS, b, below, e)
                                )
                                for r in range(HELD):
                                    w = cuda.shfl_sync(0xFFFFFFFF, weights[r * ACROSS + a], n)
                                    second[r * SECOND_PIECES + m] += w * y
            for r in range(HELD):
                at = i + warp * HELD + r
                if at < i1 and OF_KEYS:
                    for m in range(PIECES):
                        e = m * 32 + lane
                        if e < SIZE:
                            STORE(OPERANDS, b, at, e, first[r * PIECES + m] * SCALE)
                    for m in range(SECOND_PIECES):
                        e = m * 32 + lane
                        if e < COLUMNS:
                            STORE(OPERANDS, b, at, SIZE + e, second[r * SECOND_PIECES + m])
                elif at < i1:
                    d = PORTION(along[r], totals[r])
                    for m in range(PIECES):
                        e = m * 32 + lane
                        if e < SIZE:
                            left = first[r * PIECES + m] - d * second[r * PIECES + m]
                            STORE(OPERANDS, b, at, e, PORTION(left, totals[r]) * SCALE)
                    if lane == 0:
                        STORE(OPERANDS, b, at, SIZE, largest[r] + math.log(totals[r]))
                        STORE(OPERANDS, b, at, SIZE + 1, d)


def _parameters(held: int, across: int, staged: int) -> Callable[[Root], Parameters]:
    """STRIDE: an odd distance of inner rows, which lanes read side by side."""

    def parameters(root: Root) -> Parameters:
        sides = Sides.of(root)
        return {
            "ACROSS": across,
            "HELD": held,
            "HEIGHT": held * _WARPS,
            "PIECES": math.ceil(sides.size / 32),
            "SECOND_PIECES": math.ceil(sides.second / 32),
            "STAGED": staged,
            "STRIDE": (sides.size + sides.columns) | 1,
        }

    return parameters


def _scratch(root: Root, p: Parameters) -> int:
    """Outer rows, and inner ones."""
    sides = Sides.of(root)
    words = (
        p["HEIGHT"] * (sides.size + sides.columns) + p["STAGED"] * 32 * p["ACROSS"] * p["STRIDE"]
    )
    return words * numpy_dtype(tensor_type(sides.op.y).element_type).itemsize


_MOST_SUMS = 64
"""Sums that a thread keeps in registers."""


def _legal(held: int, across: int, staged: int) -> Callable[[Root], bool]:
    def legal(root: Root) -> bool:
        p = _parameters(held, across, staged)(root)
        # Inner rows beyond the first 32 are worth their room where there are any.
        if across > 1 and Sides.of(root).others <= 32:
            return False
        return not staged or held * (p["PIECES"] + p["SECOND_PIECES"] + 2 * across) <= _MOST_SUMS

    return legal


def _work(held: int, across: int, staged: int) -> Callable[[Part], Work]:
    """Each turn waits for its inner rows; then each warp has its scores, element after element, and what they
    add to its sums, inner row after inner row."""

    def counted(part: Part) -> Work:
        sides, p = Sides.of(part.root), _parameters(held, across, staged)(part.root)
        lead, rows, others = met(part)
        height, inner = p["HEIGHT"], 32 * across
        turns = lead * math.ceil(rows / height) * math.ceil(others / inner)
        width = sides.size + sides.columns
        sums = 32 * (p["PIECES"] + p["SECOND_PIECES"])
        each = work(
            round=2 if staged else 2 * width,
            barrier=2,
            shuffle=15 * held,
            chain=0.6 * (width + inner),
            fma=2.0 * height * inner * (width + sums) * part.lanes,
        )
        each += (score(part) + work(scalar=8)) * (inner * height)
        each += read(part) * (inner if staged else inner * 2 * _WARPS)
        ends = part.store * (lead * rows * sides.sizes[-1])
        tiles = lead * math.ceil(rows / height)
        return each * turns + work(step=2, scalar=2.0 * height * width) * tiles + ends

    return counted


_VARIANTS = {
    # Outer rows of a warp, inner rows of a lane, and whether these lie in shared memory.
    "rows": (1, 1, 1),
    "rows2": (2, 1, 1),
    "rows2_wide": (2, 2, 1),
    "rows4": (4, 1, 1),
    "rows4_wide": (4, 2, 1),
    "unstaged": (1, 1, 0),
}

RKERNELS = [
    RKernel(
        "attention_gradient",
        name,
        "cuda",
        __name__,
        "attention_gradient_rows",
        legal=_legal(*tile),
        work=_work(*tile),
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=_parameters(*tile),
    )
    for name, tile in _VARIANTS.items()
]
