"""reduce and pool: one output at a time; in index order, or sums in any order, in vector registers.

Of pools that take a maximum many outputs at a time.
"""

import math

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import BlockArgument

from irkit.dialects.pool_windows import pool_windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import is_float, numpy_dtype, tensor_type
from irkit.rkernels.families.reduction import combines_by, joined_reduction
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


def _in_lanes(part: Part) -> Work:
    """A vector of terms is as many sums under way, which are joined for each run of terms."""
    runs = part.terms / joined_reduction(part.root)[-1]
    terms = (part.next_term + work(op=1)) * part.terms + work(op=16, chain=2) * runs
    return (terms + part.store + work(row=1)) * part.elements


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
