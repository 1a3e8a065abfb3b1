"""reduce and pool: one output at a time; in index order, or sums in any order, in vector registers."""

import math

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import is_float, tensor_type
from irkit.rkernels.families.reduction import combines_by
from irkit.rkernels.rkernel import RKernel
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
    runs = part.terms / part.root.reduction[-1]
    terms = (part.next_term + work(op=1)) * part.terms + work(op=16, chain=2) * runs
    return (terms + part.store + work(row=1)) * part.elements


RKERNELS = [
    *(
        RKernel(family, "serial", "cpu", __name__, "reduce_serial", work=_work)
        for family in ("reduce", "pool")
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
