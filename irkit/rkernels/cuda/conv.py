"""Contractions over windows, straight from the terms: COMBINE is addition.

`conv_tile` gives a thread TILE outputs of one row, which share the loads that depend on the row only (the
filter's). `conv_split` shares one output among LANES threads, for few outputs and many channels.
"""

import math

from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def _one_contraction(root: Root) -> bool:
    return len(root.chain) == 1


def _many_channels(root: Root) -> bool:
    """Enough channels for LANES threads to share."""
    return len(root.chain) == 1 and len(root.reduction) == 3 and root.reduction[0] >= 32


def _work(at_once: int, tile: int, lanes: int, shuffles: int):
    """`at_once` tiles of outputs of one row together, `lanes` terms of each."""

    def counted(part: Part) -> Work:
        tiles = part.rows * math.ceil(part.width / tile)
        # Two loads a term, whose wait little else fills.
        waits = work(chain=2 * math.ceil(part.terms / lanes), shuffle=shuffles)
        waits = waits * part.rounds(tiles, at_once)
        return waits + work(term=tiles * tile * part.terms) + part.store * part.elements

    return counted


def conv_tile(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    # A thread's outputs lie `step` columns apart, so that neighbours read neighbouring columns.
    step, _ = divide(j1 - j0 + TILE - 1, TILE)
    count = (r1 - r0) * step
    acc = cuda.local.array(TILE, FLOAT)
    element = thread_index()
    while element < count:
        row, column = divide(element, step)
        r = r0 + row
        j = j0 + column
        for i in range(TILE):
            acc[i] = INIT(OPERANDS, r, min(j + i * step, j1 - 1))
        for k0 in range(K0):
            for k1 in range(K1):
                for k2 in range(K2):
                    for i in range(TILE):
                        term = TERM(OPERANDS, r, min(j + i * step, j1 - 1), k0, k1, k2)
                        acc[i] = COMBINE(acc[i], term)
        for i in range(TILE):
            if j + i * step < j1:
                STORE(OPERANDS, r, j + i * step, acc[i])
        element += THREADS


def conv_split(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    group, lane = divide(thread_index(), LANES)
    first = 0
    while first < count:
        # A group past the end repeats the last output, so that all lanes meet at the shuffles.
        element = min(first + group, count - 1)
        row, column = divide(element, width)
        r = r0 + row
        j = j0 + column
        acc = FLOAT(0)
        k0 = lane
        while k0 < K0:
            for k1 in range(K1):
                for k2 in range(K2):
                    acc = COMBINE(acc, TERM(OPERANDS, r, j, k0, k1, k2))
            k0 += LANES
        distance = LANES // 2
        while distance > 0:
            acc = COMBINE(acc, cuda.shfl_xor_sync(0xFFFFFFFF, acc, distance))
            distance >>= 1
        if lane == 0 and first + group < count:
            STORE(OPERANDS, r, j, COMBINE(INIT(OPERANDS, r, j), acc))
        first += THREADS // LANES


RKERNELS = [
    RKernel(
        "conv",
        "tile",
        "cuda",
        __name__,
        "conv_tile",
        legal=_one_contraction,
        parameters={"TILE": 4},
        choices={"TILE": range(1, 9)},
        work=_work(256, 4, 1, 0),
    ),
    RKernel(
        "conv",
        "split",
        "cuda",
        __name__,
        "conv_split",
        reassociates=True,
        legal=_many_channels,
        parameters={"LANES": 8},
        choices={"LANES": (2, 4, 8, 16, 32)},
        work=_work(32, 1, 8, 3),
    ),
]
