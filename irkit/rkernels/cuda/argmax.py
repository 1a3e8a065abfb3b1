"""Number of the first largest element of the last dimension; NaN is larger than all.

`argmax_warp` gives a warp a row, whose elements its shuffles must be able to move; `argmax_thread` gives a
thread a row, of any elements.
"""

import math

from xdsl.dialects.builtin import f32, f64, i32, i64

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def argmax_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(THREAD, 32)
    following = r0 + warp
    while following < r1:
        r = following
        following += THREADS // 32
        best = lane if lane < K0 else 0
        value = LOAD(OPERANDS, r, best)
        for k in range(lane + 32, K0, 32):
            candidate = LOAD(OPERANDS, r, k)
            if candidate > value or (candidate != candidate and value == value):
                best = k
                value = candidate
        distance = 16
        while distance > 0:
            k = cuda.shfl_xor_sync(0xFFFFFFFF, best, distance)
            candidate = cuda.shfl_xor_sync(0xFFFFFFFF, value, distance)
            alike = candidate == value or (candidate != candidate and value != value)
            larger = candidate > value or (candidate != candidate and value == value)
            if larger or (alike and k < best):
                best = k
                value = candidate
            distance >>= 1
        if lane == 0:
            STORE(OPERANDS, r, best)


def argmax_thread(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    following = r0 + THREAD
    while following < r1:
        r = following
        following += THREADS
        best = int64(0)
        value = LOAD(OPERANDS, r, 0)
        for k in range(1, K0):
            candidate = LOAD(OPERANDS, r, k)
            if candidate > value or (candidate != candidate and value == value):
                best = int64(k)
                value = candidate
        STORE(OPERANDS, r, best)


def _shuffled(root: Root) -> bool:
    """Elements that shuffles move."""
    assert isinstance(root.op, te.ArgmaxOp)
    return tensor_type(root.op.x).element_type in (i32, i64, f32, f64)


def _warp_work(part: Part) -> Work:
    rounds = part.rounds(part.elements, part.threads // 32)
    waits = work(chain=math.ceil(part.terms / 32), shuffle=10, round=1) * rounds
    return waits + _each(part)


def _thread_work(part: Part) -> Work:
    rounds = part.rounds(part.elements, part.threads)
    return work(chain=part.terms, round=1) * rounds + _each(part)


def _each(part: Part) -> Work:
    terms = part.loads + work(scalar=4)
    return terms * (part.elements * part.terms) + part.store * part.elements


RKERNELS = [
    RKernel(
        "argmax",
        "warp",
        "cuda",
        __name__,
        "argmax_warp",
        legal=_shuffled,
        work=_warp_work,
        spreads=lambda part: part.elements * 32,
    ),
    RKernel(
        "argmax",
        "thread",
        "cuda",
        __name__,
        "argmax_thread",
        work=_thread_work,
        spreads=lambda part: part.elements,
    ),
]
