"""Pooling of operands in memory: windows without padding are read at once."""

import math

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import BlockArgument

from irkit.dialects.pool_windows import pool_windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.families.reduction import combines_by
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_THREADS = 256


def pool_inside(task, tasks, rows, scratch, OPERANDS):
    """Windows without padding are read at once: no term waits behind the question whether it is one."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element = THREAD
    while element < count:
        row, column = divide(element, width)
        r = r0 + row
        j = j0 + column
        acc = INIT(OPERANDS, r, j)
        if INSIDE(r) and FIRST <= j < LAST:
            first = FIRST_OF(r, j)
            for k0 in range(SIZE0):
                for k1 in range(SIZE1):
                    for k2 in range(SIZE2):
                        at = first + k0 * STEP0 + k1 * STEP1 + k2 * STEP2
                        acc = COMBINE(acc, SOURCE[at])
        else:
            for k0 in range(K0):
                for k1 in range(K1):
                    for k2 in range(K2):
                        acc = COMBINE(acc, TERM(OPERANDS, r, j, k0, k1, k2))
        STORE(OPERANDS, r, j, acc)
        element += THREADS


_AT_ONCE = 32
"""So many terms of a window are under way at once."""


def _seen_at_once(root: Root) -> bool:
    """The largest or the least of few floats in memory, whose windows are known."""
    found = pool_windows(root)
    if found is None or combines_by(root) not in ("max", "min") or len(root.reduction) > 3:
        return False
    kinds = (tensor_type(v).element_type for v in (found.source, root.chain[-1].results[0]))
    floats = all(isinstance(kind, Float32Type | Float64Type) for kind in kinds)
    in_memory = isinstance(found.source, BlockArgument) and len(root.parallel) > 1
    return floats and in_memory and 1 < math.prod(root.reduction) <= _AT_ONCE


def _sizes(root: Root) -> Parameters:
    """Of a window, and how far apart its elements are."""
    found = pool_windows(root)
    assert found is not None
    none = 3 - len(root.reduction)
    sizes, steps = (*root.reduction, *(1,) * none), (*found.steps, *(0,) * none)
    given = zip(sizes, steps, strict=True)
    return {
        f"{name}{n}": v
        for n, both in enumerate(given)
        for name, v in zip(("SIZE", "STEP"), both, strict=True)
    }


def _inside(part: Part) -> Work:
    """Terms that arrive together."""
    waits = work(chain=2) * part.rounds(part.elements, _THREADS)
    return waits + part.term * (part.elements * part.terms) * 0.25 + part.store * part.elements


RKERNELS = [
    RKernel(
        "pool",
        "inside",
        "cuda",
        __name__,
        "pool_inside",
        legal=_seen_at_once,
        work=_inside,
        parameters=_sizes,
        spreads=lambda part: part.elements,
    ),
]
