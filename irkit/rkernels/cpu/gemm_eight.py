"""gemm.dot_eight: one column of a product, eight rows at a time.

Where the matrix comes from memory, eight streams of it are under way at once: four, as `gemm.dot` has them,
leave a part of what memory gives unused.
"""

import math

from irkit.dialects.roperator_root import Root, gemm_layout
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.families.row_terms import JOINING
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, total, work


def gemm_dot_eight(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    r = r0
    while r + 8 <= r1:
        a0 = FLOAT(0)
        a1 = FLOAT(0)
        a2 = FLOAT(0)
        a3 = FLOAT(0)
        a4 = FLOAT(0)
        a5 = FLOAT(0)
        a6 = FLOAT(0)
        a7 = FLOAT(0)
        for k in range(K):
            b = LOAD_B(OPERANDS, k, 0)
            a0 += LOAD_A(OPERANDS, r, k) * b
            a1 += LOAD_A(OPERANDS, r + 1, k) * b
            a2 += LOAD_A(OPERANDS, r + 2, k) * b
            a3 += LOAD_A(OPERANDS, r + 3, k) * b
            a4 += LOAD_A(OPERANDS, r + 4, k) * b
            a5 += LOAD_A(OPERANDS, r + 5, k) * b
            a6 += LOAD_A(OPERANDS, r + 6, k) * b
            a7 += LOAD_A(OPERANDS, r + 7, k) * b
        STORE(OPERANDS, r, 0, INIT(OPERANDS, r, 0) + a0)
        STORE(OPERANDS, r + 1, 0, INIT(OPERANDS, r + 1, 0) + a1)
        STORE(OPERANDS, r + 2, 0, INIT(OPERANDS, r + 2, 0) + a2)
        STORE(OPERANDS, r + 3, 0, INIT(OPERANDS, r + 3, 0) + a3)
        STORE(OPERANDS, r + 4, 0, INIT(OPERANDS, r + 4, 0) + a4)
        STORE(OPERANDS, r + 5, 0, INIT(OPERANDS, r + 5, 0) + a5)
        STORE(OPERANDS, r + 6, 0, INIT(OPERANDS, r + 6, 0) + a6)
        STORE(OPERANDS, r + 7, 0, INIT(OPERANDS, r + 7, 0) + a7)
        r += 8
    while r + 4 <= r1:
        a0 = FLOAT(0)
        a1 = FLOAT(0)
        a2 = FLOAT(0)
        a3 = FLOAT(0)
        for k in range(K):
            b = LOAD_B(OPERANDS, k, 0)
            a0 += LOAD_A(OPERANDS, r, k) * b
            a1 += LOAD_A(OPERANDS, r + 1, k) * b
            a2 += LOAD_A(OPERANDS, r + 2, k) * b
            a3 += LOAD_A(OPERANDS, r + 3, k) * b
        STORE(OPERANDS, r, 0, INIT(OPERANDS, r, 0) + a0)
        STORE(OPERANDS, r + 1, 0, INIT(OPERANDS, r + 1, 0) + a1)
        STORE(OPERANDS, r + 2, 0, INIT(OPERANDS, r + 2, 0) + a2)
        STORE(OPERANDS, r + 3, 0, INIT(OPERANDS, r + 3, 0) + a3)
        r += 4
    while r < r1:
        acc = FLOAT(0)
        for k in range(K):
            acc += LOAD_A(OPERANDS, r, k) * LOAD_B(OPERANDS, k, 0)
        STORE(OPERANDS, r, 0, INIT(OPERANDS, r, 0) + acc)
        r += 1


_GAIN = 0.15
"""The share of the time that the matrix's bytes take that eight rows side by side save, by measurement."""


_FEWEST = 512
"""Terms of a sum: of fewer, joining the lanes of eight sums takes longer than is saved."""


def _legal(root: Root) -> bool:
    """One column, of a matrix with long rows, in memory or made where it is read."""
    if gemm_layout(root) not in ("jk", "kj") or len(root.parallel) != 2 or root.parallel[-1] != 1:
        return False
    if root.reduction[0] < _FEWEST:
        return False
    return root.parallel[0] == DYNAMIC or root.parallel[0] >= 8


def _bytes_read(root: Root) -> int:
    """Bytes in memory of what an element of the matrix is made of."""
    whole = math.prod(root.parallel) * root.reduction[0]
    body = root.body
    types = [tensor_type(a) for a in body.args] if body is not None else []
    return sum(
        numpy_dtype(t.element_type).itemsize for t in types if math.prod(t.get_shape()) == whole
    )


def _work(part: Part) -> Work:
    """Eight rows share what is read of the column, or four, or none."""
    rows, terms = part.rows, part.elements * part.terms
    eights, fours = rows // 8 * 8 / rows, rows % 8 // 4 * 4 / rows
    shared = 0.45 * eights + 0.5 * fours + 1.05 * (1 - eights - fours)
    read = total(part.fused(v) for v in part.root.chain[-1].inputs)
    outputs = (part.store + work(row=1, chain=JOINING)) * part.elements
    saved = work(byte=-_GAIN * eights * _bytes_read(part.root)) * terms
    return (read + work(dot=shared * part.lanes)) * terms + outputs + saved


RKERNELS = [
    RKernel(
        "gemm",
        "dot_eight",
        "cpu",
        __name__,
        "gemm_dot_eight",
        legal=_legal,
        work=_work,
        reassociates=True,
        contracts=True,
    )
]
