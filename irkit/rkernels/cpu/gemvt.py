"""gemvt: both products with a matrix, of a few rows at a time."""

import math

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.row_terms import JOINING
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def gemvt_rows(task, tasks, rows, scratch, OPERANDS):
    """Four rows at a time, which come from memory for one product, and from the cache for the other."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    sums = POINTER(scratch)
    for r in range(r0, r1):
        first, last = PART(r)
        for k in range(COLUMNS):
            sums[k] = FLOAT(0)
        i = first
        while i + 4 <= last:
            z0 = FLOAT(0)
            z1 = FLOAT(0)
            z2 = FLOAT(0)
            z3 = FLOAT(0)
            for k in range(COLUMNS):
                x = LOAD_X(OPERANDS, k)
                z0 += LOAD_A(OPERANDS, i, k) * x
                z1 += LOAD_A(OPERANDS, i + 1, k) * x
                z2 += LOAD_A(OPERANDS, i + 2, k) * x
                z3 += LOAD_A(OPERANDS, i + 3, k) * x
            j = i - first
            STORE(OPERANDS, r, j, z0)
            STORE(OPERANDS, r, j + 1, z1)
            STORE(OPERANDS, r, j + 2, z2)
            STORE(OPERANDS, r, j + 3, z3)
            f0 = LOAD_R(OPERANDS, i, z0)
            f1 = LOAD_R(OPERANDS, i + 1, z1)
            f2 = LOAD_R(OPERANDS, i + 2, z2)
            f3 = LOAD_R(OPERANDS, i + 3, z3)
            for k in range(COLUMNS):
                sum = sums[k] + f0 * LOAD_A(OPERANDS, i, k)
                sum += f1 * LOAD_A(OPERANDS, i + 1, k)
                sum += f2 * LOAD_A(OPERANDS, i + 2, k)
                sums[k] = sum + f3 * LOAD_A(OPERANDS, i + 3, k)
            i += 4
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


def gemvt_together(task, tasks, rows, scratch, OPERANDS):
    """Four rows at a time, where neither product waits for the other: of both in one sweep."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    sums = POINTER(scratch)
    for r in range(r0, r1):
        first, last = PART(r)
        for k in range(COLUMNS):
            sums[k] = FLOAT(0)
        i = first
        while i + 4 <= last:
            z0 = FLOAT(0)
            z1 = FLOAT(0)
            z2 = FLOAT(0)
            z3 = FLOAT(0)
            f0 = LOAD_R(OPERANDS, i, z0)
            f1 = LOAD_R(OPERANDS, i + 1, z1)
            f2 = LOAD_R(OPERANDS, i + 2, z2)
            f3 = LOAD_R(OPERANDS, i + 3, z3)
            for k in range(COLUMNS):
                x = LOAD_X(OPERANDS, k)
                a0 = LOAD_A(OPERANDS, i, k)
                a1 = LOAD_A(OPERANDS, i + 1, k)
                a2 = LOAD_A(OPERANDS, i + 2, k)
                a3 = LOAD_A(OPERANDS, i + 3, k)
                z0 += a0 * x
                z1 += a1 * x
                z2 += a2 * x
                z3 += a3 * x
                sum = sums[k] + f0 * a0
                sum += f1 * a1
                sum += f2 * a2
                sums[k] = sum + f3 * a3
            j = i - first
            STORE(OPERANDS, r, j, z0)
            STORE(OPERANDS, r, j + 1, z1)
            STORE(OPERANDS, r, j + 2, z2)
            STORE(OPERANDS, r, j + 3, z3)
            i += 4
        while i < last:
            z0 = FLOAT(0)
            f0 = LOAD_R(OPERANDS, i, z0)
            for k in range(COLUMNS):
                a0 = LOAD_A(OPERANDS, i, k)
                z0 += a0 * LOAD_X(OPERANDS, k)
                sums[k] = sums[k] + f0 * a0
            STORE(OPERANDS, r, i - first, z0)
            i += 1
        for j in range(last - first, HEIGHT):
            STORE(OPERANDS, r, j, FLOAT(0))
        for k in range(COLUMNS):
            STORE(OPERANDS, r, HEIGHT + k, sums[k])


_TOGETHER = 0.75
"""Of the time of two sweeps, one after the other, by measurement."""


def _op(root: Root) -> te.GemvtOp:
    assert isinstance(root.op, te.GemvtOp)
    return root.op


def _apart(root: Root) -> bool:
    """Whether what rows are multiplied by is known before their products."""
    return _op(root).r is not None


def _work(part: Part) -> Work:
    """Four rows share what is read of x, and of the sums."""
    op = _op(part.root)
    fours, rest = divmod(op.height, 4)
    terms = (fours * 4 * 1.0 + rest * 2.05) * op.columns
    read = part.fused(op.a) + part.fused(op.x) * (1 / 4)
    each = read * (2.0 * op.height * op.columns) + work(dot=terms * part.lanes)
    joined = work(row=3, chain=JOINING) * math.ceil(op.height / 4)
    return (each + joined) * part.rows + part.store * part.elements


def _together_work(part: Part) -> Work:
    """Each element is read once."""
    return _work(part) * _TOGETHER


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
    RKernel(
        "gemvt",
        "together",
        "cpu",
        __name__,
        "gemvt_together",
        legal=_apart,
        work=_together_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
    ),
]
