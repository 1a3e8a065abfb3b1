"""reduce and pool: one output at a time; in index order, or sums in any order, in vector registers, or the
largest of eight runs of terms side by side.

Of pools that take a maximum many outputs at a time.
"""

import math

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import BlockArgument

from irkit.dialects.linalg_generic import maps
from irkit.dialects.pool_windows import pool_windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import is_float, is_half, numpy_dtype, tensor_type
from irkit.rkernels.families.reduction import combines_by, joined_reduction
from irkit.rkernels.fused_work import step
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def reduce_serial(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            acc = INIT(OPERANDS, r, j)
            for k0 in range(K0):
                for k1 in range(K1):
                    for k2 in range(K2):
                        acc = COMBINE(acc, TERM(OPERANDS, r, j, k0, k1, k2))
            STORE(OPERANDS, r, j, acc)


def reduce_eighths(task, tasks, rows, scratch, OPERANDS):
    """Eight runs of terms side by side, so that no comparison waits for the one before, joined in their
    order: of terms that are equal, or NaN, it has what index order has."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    run = K0 // 8
    for r in range(r0, r1):
        for j in range(j0, j1):
            a = COMBINE(INIT(OPERANDS, r, j), TERM(OPERANDS, r, j, 0, 0, 0))
            b = TERM(OPERANDS, r, j, run, 0, 0)
            c = TERM(OPERANDS, r, j, 2 * run, 0, 0)
            d = TERM(OPERANDS, r, j, 3 * run, 0, 0)
            e = TERM(OPERANDS, r, j, 4 * run, 0, 0)
            f = TERM(OPERANDS, r, j, 5 * run, 0, 0)
            g = TERM(OPERANDS, r, j, 6 * run, 0, 0)
            h = TERM(OPERANDS, r, j, 7 * run, 0, 0)
            for k in range(1, run):
                a = COMBINE(a, TERM(OPERANDS, r, j, k, 0, 0))
                b = COMBINE(b, TERM(OPERANDS, r, j, run + k, 0, 0))
                c = COMBINE(c, TERM(OPERANDS, r, j, 2 * run + k, 0, 0))
                d = COMBINE(d, TERM(OPERANDS, r, j, 3 * run + k, 0, 0))
                e = COMBINE(e, TERM(OPERANDS, r, j, 4 * run + k, 0, 0))
                f = COMBINE(f, TERM(OPERANDS, r, j, 5 * run + k, 0, 0))
                g = COMBINE(g, TERM(OPERANDS, r, j, 6 * run + k, 0, 0))
                h = COMBINE(h, TERM(OPERANDS, r, j, 7 * run + k, 0, 0))
            acc = COMBINE(
                COMBINE(COMBINE(a, b), COMBINE(c, d)), COMBINE(COMBINE(e, f), COMBINE(g, h))
            )
            for k in range(8 * run, K0):
                acc = COMBINE(acc, TERM(OPERANDS, r, j, k, 0, 0))
            STORE(OPERANDS, r, j, acc)


def reduce_columns(task, tasks, rows, scratch, OPERANDS):
    """STRIP outputs side by side at a time, each term of all of them after the one before: in index order."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = POINTER(scratch)
    for r in range(r0, r1):
        for start in range(j0, j1, STRIP):
            count = min(STRIP, j1 - start)
            for i in range(count):
                acc[i] = INIT(OPERANDS, r, start + i)
            # Of rows four at a time, so that sums are read and written a quarter as often.
            whole = K0 // 4 * 4 if K1 * K2 == 1 else 0
            for k in range(0, whole, 4):
                for i in range(count):
                    j = start + i
                    total = COMBINE(acc[i], TERM(OPERANDS, r, j, k, 0, 0))
                    total = COMBINE(total, TERM(OPERANDS, r, j, k + 1, 0, 0))
                    total = COMBINE(total, TERM(OPERANDS, r, j, k + 2, 0, 0))
                    acc[i] = COMBINE(total, TERM(OPERANDS, r, j, k + 3, 0, 0))
            for k0 in range(whole, K0):
                for k1 in range(K1):
                    for k2 in range(K2):
                        for i in range(count):
                            acc[i] = COMBINE(acc[i], TERM(OPERANDS, r, start + i, k0, k1, k2))
            for i in range(count):
                STORE(OPERANDS, r, start + i, acc[i])


def pool_inside(task, tasks, rows, scratch, OPERANDS):
    """Outputs whose windows have no padding LANES at a time, the last ones with some before them again."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    first = max(j0, FIRST)
    last = min(j1, LAST)
    best = POINTER(scratch)
    for r in range(r0, r1):
        begin = j1
        end = j1
        if INSIDE(r) and last - first >= LANES:
            begin = first
            end = last
        for side in range(2):
            for j in range(end if side else j0, j1 if side else begin):
                acc = INIT(OPERANDS, r, j)
                for k0 in range(K0):
                    for k1 in range(K1):
                        for k2 in range(K2):
                            acc = COMBINE(acc, TERM(OPERANDS, r, j, k0, k1, k2))
                STORE(OPERANDS, r, j, acc)
        for block in range(begin, end, LANES):
            at = min(block, end - LANES)
            extremes(LARGEST, LANES, STRIDE, SHAPE, STEPS, SOURCE, FIRST_OF(r, at), best)
            for j in range(LANES):
                acc = COMBINE(INIT(OPERANDS, r, at + j), best[j])
                STORE(OPERANDS, r, at + j, acc)


_UNROLLED = 32
"""So few terms are unrolled, and several outputs computed at once."""
_STRIP = 512
"""Sums of a strip of columns: of float64 they take an eighth of a nearest cache of 32 KiB."""
_FEW_COLUMNS = 8
"""Fewer fill no vector."""


def _work(part: Part) -> Work:
    # A comparison that NaN must survive is two, and a choice.
    steps = 1 if combines_by(part.root) in ("add", "mul") else 3
    term = part.term if part.terms <= _UNROLLED else part.next_term + work(chain=steps)
    terms = term * (part.elements * part.terms)
    return terms + (part.store + work(row=1)) * part.elements


def _long_sum(root: Root) -> bool:
    """A sum of floats, of so many terms that they are taken one output after another."""
    element = tensor_type(root.chain[-1].results[0]).element_type
    added = combines_by(root) == "add" and is_float(element)
    return added and math.prod(root.reduction) > _UNROLLED


def _long_comparison(root: Root) -> bool:
    """The largest or the least of many floats in one line; of integers, vectors are compared anyway."""
    line = joined_reduction(root)
    element = tensor_type(root.chain[-1].results[0]).element_type
    compares = combines_by(root) in ("max", "min") and is_float(element) and not is_half(element)
    return compares and len(line) == 1 and line[0] > _UNROLLED


def _in_eighths(part: Part) -> Work:
    """As many comparisons as in order, and none that waits."""
    terms = (part.next_term + work(op=3)) * (part.elements * part.terms)
    return terms + (part.store + work(row=1, op=24, chain=9)) * part.elements


def _in_lanes(part: Part) -> Work:
    """A vector of terms is as many sums under way, which are joined for each run of terms."""
    runs = part.terms / joined_reduction(part.root)[-1]
    terms = (part.next_term + work(op=1)) * part.terms + work(op=16, chain=2) * runs
    return (terms + part.store + work(row=1)) * part.elements


def _beside(root: Root) -> bool:
    """Outputs whose terms lie side by side, and those of one output apart: a column of a matrix each."""
    op, loops = root.chain[-1], len(root.parallel) + len(root.reduction)
    element = tensor_type(op.results[0]).element_type
    if not root.parallel or root.parallel[-1] in range(_FEW_COLUMNS) or is_half(element):
        return False
    steps = [
        (step(m, len(root.parallel) - 1), step(m, loops - 1)) for m in maps(op)[: len(op.inputs)]
    ]
    return all(along <= 1 for along, _ in steps) and any(down > 1 for _, down in steps)


def _in_columns(part: Part) -> Work:
    """A sum is read and written for each term, in the nearest cache."""
    terms = (part.term + work(op=0.5 * part.lanes)) * (part.elements * part.terms)
    runs = work(row=1) * (part.rows * part.terms * part.rounds(part.width, _STRIP))
    return terms + runs + (part.store + work(op=1)) * part.elements + work(row=part.rows)


def _column_sums(root: Root, parameters: Parameters) -> int:
    """The outputs of a strip."""
    element = tensor_type(root.chain[-1].results[0]).element_type
    return parameters["STRIP"] * numpy_dtype(element).itemsize


def _lanes(root: Root) -> int:
    """Outputs of a block: of a row that has fewer, as many as a shorter vector has."""
    found = pool_windows(root)
    width = found.last - found.first if found is not None else 0
    return next((n for n in (16, 8, 4) if n <= width), 0)


def _has_blocks(root: Root) -> bool:
    """Windows that vectors can read, few of whose terms are compared at once."""
    found = pool_windows(root)
    if found is None or combines_by(root) not in ("max", "min"):
        return False
    source, result = found.source, root.chain[-1].results[0]
    floats = all(
        isinstance(tensor_type(v).element_type, Float32Type | Float64Type) for v in (source, result)
    )
    few = math.prod(root.reduction) <= _UNROLLED
    in_memory = isinstance(source, BlockArgument) and len(root.parallel) > 1
    return floats and few and in_memory and found.stride in (1, 2) and _lanes(root) > 0


def _scratch(root: Root, parameters: Parameters) -> int:
    """The outputs of a block."""
    element = tensor_type(root.chain[-1].results[0]).element_type
    return parameters["LANES"] * numpy_dtype(element).itemsize


def _inside(part: Part) -> Work:
    """Terms at edges are taken one by one, those of whole windows in vectors, by measurement."""
    found = pool_windows(part.root)
    assert found is not None
    lanes = _lanes(part.root)
    edges = max(0.0, part.width - lanes * math.ceil((found.last - found.first) / lanes)) + 1
    whole = work(op=0.8 * 16 / lanes * found.stride * part.lanes) * (part.elements * part.terms)
    stored = (part.store + work(op=1)) * part.elements + work(row=4 * part.rows)
    return whole + part.term * (edges * part.rows * part.terms) + stored


RKERNELS = [
    *(
        RKernel(family, "serial", "cpu", __name__, "reduce_serial", work=_work)
        for family in ("reduce", "pool")
    ),
    RKernel(
        "pool",
        "inside",
        "cpu",
        __name__,
        "pool_inside",
        legal=_has_blocks,
        work=_inside,
        stores_again=True,
        scratch_bytes=_scratch,
        parameters=lambda root: {"LANES": _lanes(root)},
    ),
    RKernel(
        "reduce",
        "columns",
        "cpu",
        __name__,
        "reduce_columns",
        legal=_beside,
        work=_in_columns,
        scratch_bytes=_column_sums,
        parameters={"STRIP": _STRIP},
    ),
    RKernel(
        "reduce",
        "eighths",
        "cpu",
        __name__,
        "reduce_eighths",
        legal=_long_comparison,
        work=_in_eighths,
    ),
    # Of pools too, which this family takes.
    RKernel(
        "reduce",
        "lanes",
        "cpu",
        __name__,
        "reduce_serial",
        legal=_long_sum,
        work=_in_lanes,
        reassociates=True,
    ),
]
