"""Gradients of attention: one outer row after another, against all inner ones, the softmax going along.

As `irkit.rkernels.cuda.attention_gradient` says, in one pass.
"""

from __future__ import annotations

import math

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.attention_gradient import Sides, met, read, score
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def attention_gradient_rows(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    memory = POINTER(scratch)
    first = SIZE + COLUMNS
    second = first + SIZE
    for b in range(b0, b1):
        for i in range(i0, i1):
            for e in range(SIZE):
                memory[e] = LOAD_X(OPERANDS, b, i, e) * SCALE
                memory[first + e] = FLOAT(0)
            for e in range(COLUMNS):
                memory[SIZE + e] = LOAD_XX(OPERANDS, b, i, e)
            for e in range(SECOND):
                memory[second + e] = FLOAT(0)
            largest = FLOAT(-math.inf)
            total = FLOAT(0)
            along = FLOAT(0)
            start = max(i - DIAGONAL, 0) if CAUSAL and OF_KEYS else 0
            end = max(min(i + DIAGONAL + 1, OTHERS), 0) if CAUSAL and not OF_KEYS else OTHERS
            for j in range(start, end):
                s = FLOAT(0)
                for e in range(SIZE):
                    s += memory[e] * LOAD_Y(OPERANDS, b, j, e)
                t = FLOAT(0)
                for e in range(COLUMNS):
                    t += memory[SIZE + e] * LOAD_YY(OPERANDS, b, j, e)
                if OF_KEYS:
                    s = SCORE(OPERANDS, b, j, i, s)
                    p = EXP(s - LOAD_S(OPERANDS, b, j, SIZE))
                    # What has no weight has none whatever its slope.
                    w = p * (t - LOAD_S(OPERANDS, b, j, SIZE + 1)) if s != FLOAT(-math.inf) else p
                    for e in range(COLUMNS):
                        memory[second + e] += p * LOAD_YY(OPERANDS, b, j, e)
                else:
                    s = SCORE(OPERANDS, b, i, j, s)
                    # A NaN is not the largest; it makes the sum NaN.
                    top = s if s > largest else largest
                    shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                    p = EXP(s - shift)
                    factor = EXP(largest - shift)
                    largest = top
                    w = p * t if s != FLOAT(-math.inf) else p
                    total = total * factor + p
                    along = along * factor + w
                    for e in range(SIZE):
                        memory[first + e] *= factor
                        memory[second + e] = memory[second + e] * factor + p * LOAD_Y(
                            OPERANDS, b, j, e
                        )
                for e in range(SIZE):
                    memory[first + e] += w * LOAD_Y(OPERANDS, b, j, e)
            if OF_KEYS:
                for e in range(SIZE):
                    STORE(OPERANDS, b, i, e, memory[first + e] * SCALE)
                for e in range(COLUMNS):
                    STORE(OPERANDS, b, i, SIZE + e, memory[second + e])
            else:
                d = PORTION(along, total)
                for e in range(SIZE):
                    left = memory[first + e] - d * memory[second + e]
                    STORE(OPERANDS, b, i, e, PORTION(left, total) * SCALE)
                STORE(OPERANDS, b, i, SIZE, largest + math.log(total))
                STORE(OPERANDS, b, i, SIZE + 1, d)


def _scratch(root: Root, p: Parameters) -> int:
    """A row of the outer side, and its two sums."""
    sides = Sides.of(root)
    words = 2 * sides.size + sides.columns + sides.second
    return words * numpy_dtype(tensor_type(sides.op.y).element_type).itemsize


def _work(part: Part) -> Work:
    sides = Sides.of(part.root)
    lead, rows, others = met(part)
    products = 2 * sides.size + sides.columns + sides.second
    each = work(fma=products * part.lanes, row=1) + score(part) * 2 + read(part) * 2
    return each * (lead * rows * others) + part.store * (lead * rows * sides.sizes[-1])


RKERNELS = [
    RKernel(
        "attention_gradient",
        "rows",
        "cpu",
        __name__,
        "attention_gradient_rows",
        work=_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
    )
]
