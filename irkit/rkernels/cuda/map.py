"""Elementwise work, copies, gathers, transpositions: every element of an rTask's part, one by one."""

import math
from typing import Final

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import YieldOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.family import leading_parts
from irkit.rkernels.fused_work import KINDS, runs_on
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def map_elements(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element, step = THREAD, THREADS
    while element < count:
        r, j = divide(element, width)
        STORE(OPERANDS, r0 + r, j0 + j)
        element += step


def map_fetched(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element, step = THREAD, THREADS

    def fetched(n):
        r, j = divide(element + n * step, width)
        return FETCH(OPERANDS, r0 + r, j0 + j)

    def stored(n, known):
        r, j = divide(element + n * step, width)
        STORE_FETCHED(OPERANDS, r0 + r, j0 + j, known)

    # What four elements read is on its way together.
    while element + 3 * step < count:
        one, two, three, four = fetched(0), fetched(1), fetched(2), fetched(3)
        stored(0, one)
        stored(1, two)
        stored(2, three)
        stored(3, four)
        element += 4 * step
    while element < count:
        stored(0, fetched(0))
        element += step


def map_fours(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    # A four lies in one row, or there is none.
    fours = count >> 2 if width % 4 == 0 else 0
    four, step = THREAD, THREADS

    def fetched(n, i):
        r, j = divide(4 * (four + n * step), width)
        return FETCH(OPERANDS, r0 + r, j0 + j + i)

    def stored(n, i, known):
        r, j = divide(4 * (four + n * step), width)
        STORE_FETCHED(OPERANDS, r0 + r, j0 + j + i, known)

    # What two fours read is on its way together.
    while four + step < fours:
        a, b, c, d = fetched(0, 0), fetched(0, 1), fetched(0, 2), fetched(0, 3)
        e, f, g, h = fetched(1, 0), fetched(1, 1), fetched(1, 2), fetched(1, 3)
        stored(0, 0, a)
        stored(0, 1, b)
        stored(0, 2, c)
        stored(0, 3, d)
        stored(1, 0, e)
        stored(1, 1, f)
        stored(1, 2, g)
        stored(1, 3, h)
        four += 2 * step
    if four < fours:
        a, b, c, d = fetched(0, 0), fetched(0, 1), fetched(0, 2), fetched(0, 3)
        stored(0, 0, a)
        stored(0, 1, b)
        stored(0, 2, c)
        stored(0, 3, d)
    element = 4 * fours + THREAD
    while element < count:
        r, j = divide(element, width)
        STORE(OPERANDS, r0 + r, j0 + j)
        element += step


AT_ONCE: Final = 4
"""Elements whose operands a thread reads before it stores the first."""
_FREE = (arith.ConstantOp, linalg.FillOp, tensor.DimOp, tensor.EmptyOp, YieldOp)
MANY: Final = 1 << 17
"""Elements from which on each thread of a GPU has several."""


def _many(root: Root) -> bool:
    """Of a batch there may be any number of rows."""
    return DYNAMIC in root.parallel or math.prod(root.parallel) >= MANY


def _in_fours(root: Root) -> bool:
    """Many rows of whole fours, of which all that is read lies side by side, or is one element."""
    if root.body is None or len(root.parallel) < 2 or not _many(root):
        return False
    if DYNAMIC in root.parallel[1:] or root.parallel[-1] % 4:
        return False
    made = [op for op in root.body.ops if not isinstance(op, _FREE)]
    # Of a batch rTasks are launched as blocks of their own, which hide what eight copies of a function take.
    light = DYNAMIC in root.parallel or not any(_heavy(inner) for op in made for inner in op.walk())
    return light and all(_side_by_side(op) for op in made)


def _heavy(op: Operation) -> bool:
    """Whether registers that it takes eight times over leave too few threads to wait beside one another."""
    return KINDS.get(type(op)) in ("erf", "pow", "function", "sin")


def _side_by_side(op: Operation) -> bool:
    """Whether neighbours of a row are made of neighbours, or of one element: also those of slices that are
    picked whole, as rows of a table are."""
    if isinstance(op, te.GatherOp):
        return op.axis.value.data < tensor_type(op.data).get_num_dims() - 1
    return isinstance(op, linalg.GenericOp) and runs_on(op)


def _whole_rows(root: Root, tasks: int) -> list[int]:
    """Of a part of a row nobody would know at what multiples it begins."""
    return leading_parts(root, tasks, whole_rows=True)


def _fours_work(part: Part) -> Work:
    turns, left = divmod(part.rounds(part.elements / 4, part.threads), 2)
    return part.store * part.elements + work(round=turns * 1.5 + left)


def _fetched_work(part: Part) -> Work:
    each = part.store
    gathers = each.units.get("gather", 0)
    turns, left = divmod(part.rounds(part.elements, part.threads), AT_ONCE)
    # Three of four are not waited for, but what they read comes behind it.
    waits = turns * (1.5 + gathers * AT_ONCE) + left * (1 + gathers)
    return each * part.elements + work(round=waits)


def _work(part: Part) -> Work:
    each = part.store
    waits = 1 + each.units.get("gather", 0)
    return each * part.elements + work(round=waits * part.rounds(part.elements, part.threads))


RKERNELS = [
    RKernel(
        "map",
        "elements",
        "cuda",
        __name__,
        "map_elements",
        work=_work,
        spreads=True,
    ),
    RKernel(
        "map",
        "fetched",
        "cuda",
        __name__,
        "map_fetched",
        legal=_many,
        work=_fetched_work,
        spreads=True,
    ),
    RKernel(
        "map",
        "fours",
        "cuda",
        __name__,
        "map_fours",
        legal=_in_fours,
        grid=_whole_rows,
        work=_fours_work,
        spreads=True,
        aligns=True,
    ),
]
