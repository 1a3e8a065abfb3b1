"""map: elementwise ops, copies, gathers, transpositions and pads, element by element."""

import math

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.linalg import ops as linalg

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.approximations import is_approximate
from irkit.rkernels.binding.inserted import inserted_of
from irkit.rkernels.families.elementwise import BLOCK, masked_rows, short_rows
from irkit.rkernels.fused_work import words
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


def map_masked(task, tasks, rows, scratch, OPERANDS):
    """Rows of a few columns: the end of a row is a vector too, of fewer lanes."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for j in range(j0, j1):
            last_vector_of_fewer_lanes()
            STORE(OPERANDS, r, j)


def map_short(task, tasks, rows, scratch, OPERANDS):
    """Rows of a few elements, all of them for one row after another: vectors run across the rows."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    if j1 - j0 < J:
        for r in range(r0, r1):
            for j in range(j0, j1):
                STORE(OPERANDS, r, j)
        return
    r = r0
    while r < r1:
        q = r // I
        first = r - q * I
        last = min(I, first + r1 - r)
        for i in range(first, last):
            for j in range(J):
                STORE_SHORT(OPERANDS, q, i, j)
        r += last - first


def map_chosen(task, tasks, rows, scratch, OPERANDS):
    """Blocks of which a mask holds for no element need what is kept there alone: where that is there already,
    nothing is read or written."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        for b in range(j0, j1, BLOCK):
            end = min(b + BLOCK, j1)
            some = False
            for j in range(b, end):
                some |= MASK(OPERANDS, r, j)
            if some:
                for j in range(b, end):
                    STORE(OPERANDS, r, j)
            else:
                for j in range(b, end):
                    STORE_UNMASKED(OPERANDS, r, j)


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
    whole = part.width // _lanes(part) * _lanes(part) if part.width > _UNROLLED else 0
    return _stored(part, whole, 1.0) + work(row=part.rows, scalar=asked)


_REGISTER = 16
"""Words of a vector."""
_UNROLLED = 32
"""Elements of so short a row are computed one by one: LLVM unrolls the loop before it looks for vectors, and
then cannot tell whether what is stored is read again."""
_APART = 3.0
"""By how much simple arithmetic, and divisions, outside of vectors take longer, by measurement."""
_SHARE = 0.8
"""Of the time of polynomials taken a vector at a time, by measurement."""
_SHARED = 0.4
"""Of the time of elements of short rows, where they are computed together, by measurement."""
_FEW = 64
"""Columns of a row whose end, which fills no vector, is a large part of it."""


def _lanes(part: Part) -> float:
    return _REGISTER / part.lanes


def _stored(part: Part, whole: float, share: float) -> Work:
    """What it takes to store all elements: those of a row are in vectors but for what `whole` leaves, and
    their polynomials take that share of their time. A column of one element runs along the rows."""
    width = part.width
    left = max(0.0, width - whole) / width if width > 1 else 0.0
    times = {"approximate": _lanes(part), "divide": _APART, "op": _APART}
    shares = {"approximate": share * (whole / width if width > 1 else 1.0)}
    units = {
        kind: n * (shares.get(kind, 1.0 - left) + left * times[kind]) if kind in times else n
        for kind, n in part.store.units.items()
    }
    return Work(units) * part.elements


def _polynomials(root: Root) -> bool:
    """A function is computed in vector registers, for every element."""
    body = root.body
    return body is not None and not _inserts(root) and any(is_approximate(op) for op in body.walk())


def _interleaved_work(part: Part) -> Work:
    four = 4 * _lanes(part)
    return _stored(part, part.width // four * four, _SHARE) + work(row=part.rows)


_ARITHMETIC = (linalg.GenericOp, linalg.FillOp, tensor.DimOp, tensor.EmptyOp, arith.ConstantOp)


def _narrow(root: Root) -> bool:
    """Arithmetic alone, on rows of a few columns."""
    if root.body is None or len(root.parallel) < 2 or not 1 < root.parallel[-1] <= _FEW:
        return False
    *ops, last = root.body.ops
    floats = all(tensor_type(v).element_type in (f32, f64) for v in last.operands)
    return floats and all(isinstance(op, _ARITHMETIC) for op in ops)


def _masked_work(part: Part) -> Work:
    """The end of a row takes a whole vector."""
    whole = math.ceil(part.width / _lanes(part)) * _lanes(part)
    return _stored(part, whole, 1.0) * (whole / part.width) + work(row=3 * part.rows)


def _short_work(part: Part) -> Work:
    """Vectors of the dimension before the last, of which half a register's are enough; a row's elements share
    what is found for the row."""
    before, lanes = max(part.sizes[-2], 1.0), _lanes(part) / 2
    whole = before // lanes * lanes
    stored = _stored(part, whole / before * part.width, 1.0) * _SHARED
    return stored + work(row=1, index=2) * (part.rows / before)


_CHOSEN = 0.7
"""Of the blocks of a mask hold for some element: a guess, since masks are data. Asking takes a tenth of
simple arithmetic, by measurement, and saves nearly all of it where no element is chosen."""


def _chosen_work(part: Part) -> Work:
    """Every element of the mask is looked at; the rest, and its bytes, where it holds for some."""
    body = part.root.body
    assert body is not None
    assert body.last_op is not None
    values = (*body.args, *body.last_op.operands)
    kinds = [tensor_type(v) for v in values]
    large = [t.element_type for t in kinds if tuple(t.get_shape()) == part.root.parallel]
    kept = 4 * sum(map(words, large)) * part.elements
    blocks = part.rounds(part.width, BLOCK) * part.rows
    asked = work(op=part.elements / 4, row=2 * blocks, byte=-(1 - _CHOSEN) * kept)
    return part.store * (_CHOSEN * part.elements) + asked


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
    RKernel("map", "short", "cpu", __name__, "map_short", legal=short_rows, work=_short_work),
    RKernel("map", "masked", "cpu", __name__, "map_masked", legal=_narrow, work=_masked_work),
    RKernel(
        "map",
        "chosen",
        "cpu",
        __name__,
        "map_chosen",
        legal=masked_rows,
        work=_chosen_work,
        parameters={"BLOCK": BLOCK},
    ),
]
