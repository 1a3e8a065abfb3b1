"""map: elementwise ops, copies, gathers, transpositions and pads, element by element."""

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.approximations import is_approximate
from irkit.rkernels.binding.inserted import inserted_of
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def map_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            STORE(OPERANDS, r, j)


def map_interleaved(task, tasks, rows, scratch, OPERANDS):
    """Four vectors at a time: constants of polynomials are read once for all of them."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            four_vectors_at_a_time()
            STORE(OPERANDS, r, j)


def map_inserted(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        i0, i1 = WITHIN(r, j0, j1)
        for j in range(j0, i0):
            STORE_OUTSIDE(OPERANDS, r, j)
        for j in range(i0, i1, STEP):
            STORE_WITHIN(OPERANDS, r, j)
        for j in range(i1, j1):
            STORE_OUTSIDE(OPERANDS, r, j)


def _inserts(root: Root) -> bool:
    """Whether its one result is a tensor with slices inserted, at places that are known."""
    body = root.body
    values = body.last_op.operands if body is not None and body.last_op is not None else ()
    static = DYNAMIC not in root.parallel and len(root.parallel) > 0
    return static and len(values) == 1 and inserted_of(values[0]) is not None


def _work(part: Part) -> Work:
    # What is asked of each element keeps it out of vectors.
    asked = part.elements if _inserts(part.root) else 0
    return part.store * part.elements + work(row=part.rows, scalar=asked)


_SHARE = 0.8
"""Of the time of polynomials taken a vector at a time, by measurement."""


def _polynomials(root: Root) -> bool:
    """A function is computed in vector registers, for every element."""
    body = root.body
    return body is not None and not _inserts(root) and any(is_approximate(op) for op in body.walk())


def _interleaved_work(part: Part) -> Work:
    units = dict(part.store.units)
    units["approximate"] = _SHARE * units.get("approximate", 0.0)
    return Work(units) * part.elements + work(row=part.rows)


def _inserted_work(part: Part) -> Work:
    return part.store * part.elements + work(row=3 * part.rows)


RKERNELS = [
    RKernel("map", "rows", "cpu", __name__, "map_rows", work=_work),
    RKernel(
        "map", "inserted", "cpu", __name__, "map_inserted", legal=_inserts, work=_inserted_work
    ),
    RKernel(
        "map",
        "interleaved",
        "cpu",
        __name__,
        "map_interleaved",
        legal=_polynomials,
        work=_interleaved_work,
    ),
]
