"""gemm: C[r, j] = sum_k A[r, k] * B[k, j]."""

import math

from xdsl.ir import Operation, SSAValue

from irkit.dialects.linalg_generic import maps, widens
from irkit.dialects.roperator_root import Root, gemm_layout
from irkit.dialects.tensor_ops.registry import in_memory
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.families.row_terms import JOINING
from irkit.rkernels.fused_work import step
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, total, work


def gemm_strip(task, tasks, rows, scratch, OPERANDS):
    """A strip of one row's outputs at a time: streams B row by row."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(STRIP)
    for r in range(r0, r1):
        for start in range(j0, j1, STRIP):
            count = min(STRIP, j1 - start)
            for i in range(count):
                acc[i] = INIT(OPERANDS, r, start + i)
            for k in range(K):
                a = LOAD_A(OPERANDS, r, k)
                for i in range(count):
                    acc[i] = acc[i] + a * LOAD_B(OPERANDS, k, start + i)
            for i in range(count):
                STORE(OPERANDS, r, start + i, acc[i])


def gemm_sweep(task, tasks, rows, scratch, OPERANDS):
    """Four rows of B at a time, along a row's outputs: B is read as it lies, sums stay in the cache."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(SWEEP)
    for r in range(r0, r1):
        for start in range(j0, j1, SWEEP):
            count = min(SWEEP, j1 - start)
            for i in range(count):
                acc[i] = INIT(OPERANDS, r, start + i)
            k = 0
            while k + 4 <= K:
                a0 = LOAD_A(OPERANDS, r, k)
                a1 = LOAD_A(OPERANDS, r, k + 1)
                a2 = LOAD_A(OPERANDS, r, k + 2)
                a3 = LOAD_A(OPERANDS, r, k + 3)
                for i in range(count):
                    sum = acc[i]
                    sum = sum + a0 * LOAD_B(OPERANDS, k, start + i)
                    sum = sum + a1 * LOAD_B(OPERANDS, k + 1, start + i)
                    sum = sum + a2 * LOAD_B(OPERANDS, k + 2, start + i)
                    acc[i] = sum + a3 * LOAD_B(OPERANDS, k + 3, start + i)
                k += 4
            while k < K:
                a0 = LOAD_A(OPERANDS, r, k)
                for i in range(count):
                    acc[i] = acc[i] + a0 * LOAD_B(OPERANDS, k, start + i)
                k += 1
            for i in range(count):
                STORE(OPERANDS, r, start + i, acc[i])


def gemm_dot(task, tasks, rows, scratch, OPERANDS):
    """Four rows by one column of dot products: for B that is contiguous along k."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    r = r0
    while r + 4 <= r1:
        for j in range(j0, j1):
            a0 = FLOAT(0)
            a1 = FLOAT(0)
            a2 = FLOAT(0)
            a3 = FLOAT(0)
            for k in range(K):
                b = LOAD_B(OPERANDS, k, j)
                a0 += LOAD_A(OPERANDS, r, k) * b
                a1 += LOAD_A(OPERANDS, r + 1, k) * b
                a2 += LOAD_A(OPERANDS, r + 2, k) * b
                a3 += LOAD_A(OPERANDS, r + 3, k) * b
            STORE(OPERANDS, r, j, INIT(OPERANDS, r, j) + a0)
            STORE(OPERANDS, r + 1, j, INIT(OPERANDS, r + 1, j) + a1)
            STORE(OPERANDS, r + 2, j, INIT(OPERANDS, r + 2, j) + a2)
            STORE(OPERANDS, r + 3, j, INIT(OPERANDS, r + 3, j) + a3)
        r += 4
    while r < r1:
        for j in range(j0, j1):
            acc = FLOAT(0)
            for k in range(K):
                acc += LOAD_A(OPERANDS, r, k) * LOAD_B(OPERANDS, k, j)
            STORE(OPERANDS, r, j, INIT(OPERANDS, r, j) + acc)
        r += 1


def gemm_thin(task, tasks, rows, scratch, OPERANDS):
    """The same of few columns of a small B, which is turned over first; A is read as it lies."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    panel = POINTER(scratch)
    for k in range(K):
        for j in range(j0, j1):
            panel[(j - j0) * K + k] = LOAD_B(OPERANDS, k, j)
    r = r0
    while r + 4 <= r1:
        for j in range(j0, j1):
            column = (j - j0) * K
            a0 = FLOAT(0)
            a1 = FLOAT(0)
            a2 = FLOAT(0)
            a3 = FLOAT(0)
            for k in range(K):
                b = panel[column + k]
                a0 += LOAD_A(OPERANDS, r, k) * b
                a1 += LOAD_A(OPERANDS, r + 1, k) * b
                a2 += LOAD_A(OPERANDS, r + 2, k) * b
                a3 += LOAD_A(OPERANDS, r + 3, k) * b
            STORE(OPERANDS, r, j, INIT(OPERANDS, r, j) + a0)
            STORE(OPERANDS, r + 1, j, INIT(OPERANDS, r + 1, j) + a1)
            STORE(OPERANDS, r + 2, j, INIT(OPERANDS, r + 2, j) + a2)
            STORE(OPERANDS, r + 3, j, INIT(OPERANDS, r + 3, j) + a3)
        r += 4
    while r < r1:
        for j in range(j0, j1):
            acc = FLOAT(0)
            for k in range(K):
                acc += LOAD_A(OPERANDS, r, k) * panel[(j - j0) * K + k]
            STORE(OPERANDS, r, j, INIT(OPERANDS, r, j) + acc)
        r += 1


def _streams_b(root: Root) -> bool:
    return gemm_layout(root) == "kj"


def _dots_b(root: Root) -> bool:
    """Its terms lie side by side: those of the one column that there is do."""
    layout = gemm_layout(root)
    return layout == "jk" or (layout == "kj" and root.parallel[-1] == 1)


_COLUMNS, _TURNED_BYTES = 16, 1 << 14
"""Of more columns vectors are full. B is to stay in the nearest cache, beside rows of A."""


def _thin(root: Root) -> bool:
    """Many rows by few columns."""
    if gemm_layout(root) != "kj" or not 2 <= root.parallel[-1] <= _COLUMNS:
        return False
    many = root.parallel[0] == DYNAMIC or math.prod(root.parallel[:-1]) >= 4
    return many and _turned_bytes(root, {}) <= _TURNED_BYTES


def _turned_bytes(root: Root, parameters: Parameters) -> int:
    """All of B."""
    element = tensor_type(root.chain[-1].results[0]).element_type
    return root.reduction[0] * root.parallel[-1] * numpy_dtype(element).itemsize


def _work(part: Part, dots: float, joining: int) -> Work:
    """Both operands are read through what is fused before them, for every product."""
    read = total(_read(part, v) for v in part.root.chain[-1].inputs)
    each = read + work(dot=dots * part.lanes)
    outputs = (part.store + work(row=1, chain=joining)) * part.elements
    return each * (part.elements * part.terms) + outputs


def _read(part: Part, value: SSAValue) -> Work:
    """An element of an operand: by measurement one that is widened is had as soon as one that is not."""
    found = value.owner
    widened = isinstance(found, Operation) and widens(found) and in_memory(found.operands[0])
    return Work() if widened else part.fused(value)


def _strip_work(part: Part) -> Work:
    """Each product reads and writes its sum, which is on the stack."""
    return _work(part, 2.0, 0)


def _sweep_work(part: Part) -> Work:
    """Four products read and write their sum once."""
    return _work(part, 1.0, 0)


def _sweeps_b(root: Root) -> bool:
    """Few rows: more of them would read B again."""
    return _streams_b(root) and root.parallel[0] != DYNAMIC and root.parallel[0] <= 2


def _dot_work(part: Part) -> Work:
    """Four rows share what is read of B; what is left of them does not."""
    together = part.rows // 4 * 4 / part.rows
    dots = _work(part, 0.5 * together + 1.05 * (1 - together), JOINING)
    apart = _apart(part.root)
    return dots + work(stride=apart * part.elements * part.terms)


def _thin_work(part: Part) -> Work:
    """Four rows share a column; B is turned over once."""
    together = part.rows // 4 * 4 / part.rows
    dots = _work(part, 0.5 * together + 1.05 * (1 - together), JOINING)
    return dots + work(stride=1, op=1) * (part.terms * part.width)


def _apart(root: Root) -> int:
    """How many operands in memory do not have their terms side by side, and so are read one by one."""
    op, k = root.chain[-1], len(root.parallel)
    if gemm_layout(root) == "kj":
        return 0  # B is one column
    lying = [m for m, v in zip(maps(op), op.inputs, strict=False) if in_memory(v) is not None]
    return sum(step(m, k) > 1 for m in lying)


RKERNELS = [
    RKernel(
        "gemm",
        "strip",
        "cpu",
        __name__,
        "gemm_strip",
        legal=_streams_b,
        work=_strip_work,
        reassociates=True,
        contracts=True,
        parameters={"STRIP": 64},
        choices={"STRIP": range(1, 257)},
    ),
    RKernel(
        "gemm",
        "sweep",
        "cpu",
        __name__,
        "gemm_sweep",
        legal=_sweeps_b,
        work=_sweep_work,
        reassociates=True,
        contracts=True,
        parameters={"SWEEP": 2048},
    ),
    RKernel(
        "gemm",
        "dot",
        "cpu",
        __name__,
        "gemm_dot",
        legal=_dots_b,
        work=_dot_work,
        reassociates=True,
        contracts=True,
    ),
    RKernel(
        "gemm",
        "thin",
        "cpu",
        __name__,
        "gemm_thin",
        legal=_thin,
        work=_thin_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_turned_bytes,
    ),
]
