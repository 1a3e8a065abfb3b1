"""Reductions of rows whose terms lie side by side: a few lanes have an output, or all outputs of a short row.

A thread of its own for each output would read rows that lie apart, a sector for each lane; here the lanes of
a group read neighbours. SUMS, those of some rows of COLUMNS outputs, are made at once: what a row's terms
have in common is read once for its columns, what a column's have once for the rows. Sums meet by shuffles,
and each lane stores one. Terms are combined in another order, and `INIT` joins last, as in `reduce.py`.
"""

import math
from typing import Final

from xdsl.dialects.builtin import f32, f64

from irkit.dialects.linalg_generic import maps
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_integer, tensor_type
from irkit.rkernels.families.reduction import joined_reduction
from irkit.rkernels.family import leading_parts
from irkit.rkernels.fused_work import step
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def reduce_lanes(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = divide(j1 - j0, COLUMNS)[0]
    count = (r1 - r0) * width
    warp, within = divide(THREAD, 32)
    group, lane = divide(within, LANES)
    # All lanes of a warp stay together, whatever rows and terms there are.
    first = warp * (32 // LANES * (SUMS // COLUMNS))
    while first < count:
        row = first + group * (SUMS // COLUMNS)
        # A row that is not there is the last one, and nobody stores it.
        places = PLACES(OPERANDS, row, count, width)
        sums = TERMS(OPERANDS, r0, j0, places, lane)
        k = LANES
        while k + 2 * LANES <= K0 * K1 * K2:
            one = TERMS(OPERANDS, r0, j0, places, k + lane)
            other = TERMS(OPERANDS, r0, j0, places, k + LANES + lane)
            sums = ADDED(OPERANDS, ADDED(OPERANDS, sums, one), other)
            k += 2 * LANES
        while k < K0 * K1 * K2:
            # A lane without a term reads the last one.
            one = TERMS(OPERANDS, r0, j0, places, min(k + lane, K0 * K1 * K2 - 1))
            more = ADDED(OPERANDS, sums, one)
            sums = KEPT(OPERANDS, k + lane < K0 * K1 * K2, more, sums)
            k += LANES
        sums = MET(OPERANDS, sums)
        # Each lane stores one.
        for start in range(0, SUMS, LANES):
            own = OWN(OPERANDS, sums, start + lane)
            i, c = divide(start + lane, COLUMNS)
            if start + lane < SUMS and row + i < count:
                r, j = divide(row + i, width)
                column = j0 + j * COLUMNS + c
                STORE(OPERANDS, r0 + r, column, COMBINE(INIT(OPERANDS, r0 + r, column), own))
        first += THREADS // LANES * (SUMS // COLUMNS)


_MOST_COLUMNS: Final = 8
"""Outputs of a row that a group has together: their sums stay in registers."""
_FEWEST_TERMS: Final = 8


def _terms(root: Root) -> int:
    """Terms of one output that lie side by side."""
    return joined_reduction(root)[-1]


def _columns(root: Root) -> int:
    """Outputs that a group sums of a row at once: all of a short one."""
    if len(root.parallel) < 2 or root.parallel[-1] == DYNAMIC:
        return 1
    return root.parallel[-1] if root.parallel[-1] <= _MOST_COLUMNS else 1


def _parameters(root: Root) -> Parameters:
    columns = _columns(root)
    # Each lane has two terms or more, of a long row four.
    lanes = min(32, 1 << max(0, (_terms(root) // 4).bit_length() - 1))
    lanes = max(2, lanes)
    return {
        "LANES": lanes,
        "COLUMNS": columns,
        "SUMS": columns * (4 if columns <= _MOST_COLUMNS // 2 else 2),
    }


def _in_rows(root: Root) -> bool:
    """Rows that lie apart, of terms that lie side by side."""
    assert root.value is not None
    element = tensor_type(root.value).element_type
    if not (is_integer(element) or element in (f32, f64)):
        return False
    if len(root.chain) != 1 or not root.parallel or not root.reduction:
        return False
    if _terms(root) < _FEWEST_TERMS:
        return False
    op, last = root.chain[-1], len(root.parallel) + len(root.reduction) - 1
    reads = maps(op)[: len(op.inputs)]
    return any(step(m, last) == 1 for m in reads)


def _grid(root: Root, tasks: int) -> list[int]:
    """Rows of which a group has all columns are not cut."""
    return leading_parts(root, tasks, whole_rows=_columns(root) > 1)


def _turn(part: Part) -> float:
    """Elements that are summed at once by a block."""
    own = _parameters(part.root)
    return part.threads // own["LANES"] * own["SUMS"]


def _work(part: Part) -> Work:
    own = _parameters(part.root)
    # Two terms of each row are on their way together, and then what is left.
    waits = 3 + 3 * math.ceil(part.terms / (2 * own["LANES"]))
    # Sums of several rows and columns wait side by side.
    meetings = (own["LANES"].bit_length() - 1) * (3 + own["SUMS"]) / 4
    turns = part.rounds(part.elements, _turn(part))
    each = part.term * (part.elements * part.terms) + part.store * part.elements
    return each + work(chain=waits, shuffle=meetings) * turns


def _threads(part: Part) -> float:
    own = _parameters(part.root)
    return part.elements / own["SUMS"] * own["LANES"]


RKERNELS = [
    RKernel(
        "reduce",
        "lanes",
        "cuda",
        __name__,
        "reduce_lanes",
        legal=_in_rows,
        work=_work,
        parameters=_parameters,
        grid=_grid,
        reassociates=True,
        aligns=True,
        spreads=_threads,
        side_by_side=2,
    ),
]
