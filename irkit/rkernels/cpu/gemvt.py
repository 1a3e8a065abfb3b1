"""gemvt: eight rows at a time, which come from memory for one product, and from the cache for the other."""

import math

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.row_terms import JOINING
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def gemvt_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    sums = POINTER(scratch)
    for r in range(r0, r1):
        first, last = PART(r)
        for k in range(COLUMNS):
            sums[k] = FLOAT(0)
        i = first
        while i + 8 <= last:
            z0 = FLOAT(0)
            z1 = FLOAT(0)
            z2 = FLOAT(0)
            z3 = FLOAT(0)
            z4 = FLOAT(0)
            z5 = FLOAT(0)
            z6 = FLOAT(0)
            z7 = FLOAT(0)
            for k in range(COLUMNS):
                x = LOAD_X(OPERANDS, k)
                z0 += LOAD_A(OPERANDS, i, k) * x
                z1 += LOAD_A(OPERANDS, i + 1, k) * x
                z2 += LOAD_A(OPERANDS, i + 2, k) * x
                z3 += LOAD_A(OPERANDS, i + 3, k) * x
                z4 += LOAD_A(OPERANDS, i + 4, k) * x
                z5 += LOAD_A(OPERANDS, i + 5, k) * x
                z6 += LOAD_A(OPERANDS, i + 6, k) * x
                z7 += LOAD_A(OPERANDS, i + 7, k) * x
            j = i - first
            STORE(OPERANDS, r, j, z0)
            STORE(OPERANDS, r, j + 1, z1)
            STORE(OPERANDS, r, j + 2, z2)
            STORE(OPERANDS, r, j + 3, z3)
            STORE(OPERANDS, r, j + 4, z4)
            STORE(OPERANDS, r, j + 5, z5)
            STORE(OPERANDS, r, j + 6, z6)
            STORE(OPERANDS, r, j + 7, z7)
            f0 = LOAD_R(OPERANDS, i, z0)
            f1 = LOAD_R(OPERANDS, i + 1, z1)
            f2 = LOAD_R(OPERANDS, i + 2, z2)
            f3 = LOAD_R(OPERANDS, i + 3, z3)
            f4 = LOAD_R(OPERANDS, i + 4, z4)
            f5 = LOAD_R(OPERANDS, i + 5, z5)
            f6 = LOAD_R(OPERANDS, i + 6, z6)
            f7 = LOAD_R(OPERANDS, i + 7, z7)
            for k in range(COLUMNS):
                sum = sums[k] + f0 * LOAD_A(OPERANDS, i, k)
                sum += f1 * LOAD_A(OPERANDS, i + 1, k)
                sum += f2 * LOAD_A(OPERANDS, i + 2, k)
                sum += f3 * LOAD_A(OPERANDS, i + 3, k)
                sum += f4 * LOAD_A(OPERANDS, i + 4, k)
                sum += f5 * LOAD_A(OPERANDS, i + 5, k)
                sum += f6 * LOAD_A(OPERANDS, i + 6, k)
                sums[k] = sum + f7 * LOAD_A(OPERANDS, i + 7, k)
            i += 8
        while i < last:
            z0 = FLOAT(0)
            for k in range(COLUMNS):
                z0 += LOAD_A(OPERANDS, i, k) * LOAD_X(OPERANDS, k)
            STORE(OPERANDS, r, i - first, z0)
            f0 = LOAD_R(OPERANDS, i, z0)
            for k in range(COLUMNS):
                sums[k] = sums[k] + f0 * LOAD_A(OPERANDS, i, k)
            i += 1
        for j in range(last - first, HEIGHT):
            STORE(OPERANDS, r, j, FLOAT(0))
        for k in range(COLUMNS):
            STORE(OPERANDS, r, HEIGHT + k, sums[k])


def _op(root: Root) -> te.GemvtOp:
    assert isinstance(root.op, te.GemvtOp)
    return root.op


def _work(part: Part) -> Work:
    """Eight rows share what is read of x, and of the sums."""
    op = _op(part.root)
    eights, rest = divmod(op.height, 8)
    terms = (eights * 8 * 1.0 + rest * 2.05) * op.columns
    read = part.fused(op.a) + part.fused(op.x) * (1 / 8)
    each = read * (2.0 * op.height * op.columns) + work(dot=terms * part.lanes)
    joined = work(row=3, chain=JOINING) * math.ceil(op.height / 4)
    return (each + joined) * part.rows + part.store * part.elements


def _scratch(root: Root, parameters: Parameters) -> int:
    """What rows add to y."""
    op = _op(root)
    return op.columns * numpy_dtype(tensor_type(op.y).element_type).itemsize


RKERNELS = [
    RKernel(
        "gemvt",
        "rows",
        "cpu",
        __name__,
        "gemvt_rows",
        work=_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
    ),
]
