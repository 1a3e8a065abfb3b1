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


def _work(part: Part) -> Work:
    products = part.elements * part.terms
    strips = part.rows * math.ceil(part.width / 32) * part.terms
    return work(term=products * part.lanes, row=strips) + part.store * part.elements


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
        parameters={"STRIP": 32},
        choices={"STRIP": range(1, 257)},
    ),
]
