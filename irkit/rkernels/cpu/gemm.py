"""gemm: C[r, j] = sum_k A[r, k] * B[k, j]."""

from irkit.dialects.linalg_generic import maps
from irkit.dialects.roperator_root import Root, gemm_layout
from irkit.dialects.tensor_ops.registry import in_memory
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.families.row_terms import JOINING
from irkit.rkernels.fused_work import step
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


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


def _streams_b(root: Root) -> bool:
    return gemm_layout(root) == "kj"


def _dots_b(root: Root) -> bool:
    return gemm_layout(root) == "jk"


def _work(part: Part, dots: float, joining: int) -> Work:
    """Both operands are read through what is fused before them, for every product."""
    op = part.root.chain[-1]
    each = part.fused(op.inputs[0]) + part.fused(op.inputs[1]) + work(dot=dots * part.lanes)
    outputs = (part.store + work(row=1, chain=joining)) * part.elements
    return each * (part.elements * part.terms) + outputs


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


def _apart(root: Root) -> int:
    """How many operands in memory do not have their terms side by side, and so are read one by one."""
    op, k = root.chain[-1], len(root.parallel)
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
]
