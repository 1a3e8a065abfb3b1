"""conv: direct convolution, a strip of the output row at a time.

The strip's accumulators stay on the stack while the reduction runs over channels and window, so that
the innermost loop runs along the row and vectorises.
"""

import math

from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def conv_strip(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(STRIP)
    for r in range(r0, r1):
        for start in range(j0, j1, STRIP):
            count = min(STRIP, j1 - start)
            for i in range(count):
                acc[i] = INIT(OPERANDS, r, start + i)
            for k0 in range(K0):
                for k1 in range(K1):
                    for k2 in range(K2):
                        for i in range(count):
                            acc[i] = acc[i] + TERM(OPERANDS, r, start + i, k0, k1, k2)
            for i in range(count):
                STORE(OPERANDS, r, start + i, acc[i])


def _one_contraction(root: Root) -> bool:
    return len(root.chain) == 1


_STRIP = 32
_VECTOR = 8
"""Words of the vectors that a strip is cut into."""
_WAIT = work(index=5)
"""By measurement: sums of a strip that fills no vectors, or of strips of two lengths, are written in other
pieces than they are read in, which waits for memory once a term."""


def _work(part: Part) -> Work:
    products = part.elements * part.terms
    strips = part.rows * math.ceil(part.width / _STRIP) * part.terms
    odd = part.width * part.lanes % _VECTOR or (part.width > _STRIP and part.width % _STRIP)
    waits = _WAIT * strips if odd else Work()
    sums = work(term=products * part.lanes, row=strips)
    return sums + waits + part.store * part.elements


RKERNELS = [
    RKernel(
        "conv",
        "strip",
        "cpu",
        __name__,
        "conv_strip",
        legal=_one_contraction,
        work=_work,
        reassociates=True,
        contracts=True,
        parameters={"STRIP": _STRIP},
        choices={"STRIP": range(1, 257)},
    ),
]
