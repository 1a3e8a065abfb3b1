"""A cell of a recurrent network, all units of a few rows in one block, whose weights stay in shared memory.

What a step reads of the step before it has then been made by the same block, so no block waits for another.
A group of LANES lanes has HEIGHT rows of x, which stay in registers, and WIDTH rows of weights, each of
which is read once for all of these; groups have rows of weights side by side, unit by unit, gate by gate.
Pieces of a row of weights that lanes read at once lie side by side, so that no two are in one bank. VECTOR 1
needs operands whose addresses are multiples of 16. What the sums start from, and what the new state is made
of beside them, is read before the products, to hide its latency.
"""

import math
from typing import Final

from irkit.dialects.linalg_generic import RowTerm, row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def cell_two_terms(task, tasks, rows, scratch, OPERANDS):
    thread = thread_index()
    warp, in_warp = divide(thread, 32)
    group, lane = divide(in_warp, LANES)
    acc = cuda.local.array(G, FLOAT)
    first = cuda.local.array((HEIGHT * U + THREADS - 1) // THREADS * G, FLOAT)
    results = shared_of(FLOAT(0), scratch)
    for b0 in range(FIRST, LAST, HEIGHT):
        count = min(HEIGHT, LAST - b0)
        at0 = row_starts(b0, 1, b0 + count, K0, HEIGHT)
        x0 = rows_load(X0, at0, lane, K0, LANES, K0 * VECTOR)
        at1 = row_starts(b0, 1, b0 + count, K1, HEIGHT)
        x1 = rows_load(X1, at1, lane, K1, LANES, K1 * VECTOR)
        known = NOTHING
        for turn in range((HEIGHT * U + THREADS - 1) // THREADS):
            y, u = divide(thread + turn * THREADS, U)
            if y < count:
                for g in range(G):
                    first[turn * G + g] = INIT(OPERANDS, b0 + y, u, g)
                if turn == 0:
                    known = FETCH(OPERANDS, b0 + y, u)
        for begin in range(warp * (32 // LANES) * WIDTH, U * G, THREADS // LANES * WIDTH):
            row = begin + group * WIDTH
            sums = zeros_like(W0, HEIGHT * WIDTH)
            starts = row_starts(row, 1, U * G, K0, WIDTH)
            sums = held_rows_dots(sums, x0, W0, starts, lane, K0, LANES, K0 * VECTOR, RESIDENT)
            starts = row_starts(row, 1, U * G, K1, WIDTH)
            sums = held_rows_dots(sums, x1, W1, starts, lane, K1, LANES, K1 * VECTOR, RESIDENT)
            dealt = dealt_sums(sums, lane, LANES, DEALT)
            part, rest = divide(lane, LANES // DEALT)
            below, beside = divide(part * (HEIGHT * WIDTH // DEALT), WIDTH)
            rows_store(
                results, below * U * G + row + beside, 1, (below + 1) * U * G, dealt, rest == 0
            )
        cuda.syncthreads()
        for turn in range((HEIGHT * U + THREADS - 1) // THREADS):
            y, u = divide(thread + turn * THREADS, U)
            if y < count:
                for g in range(G):
                    acc[g] = first[turn * G + g] + results[(y * U + u) * G + g]
                if turn > 0:
                    known = FETCH(OPERANDS, b0 + y, u)
                STORE(OPERANDS, b0 + y, u, acc, known)
        # The next rows' sums go where these are read.
        if b0 + HEIGHT < LAST:
            cuda.syncthreads()


def cell_one_term(task, tasks, rows, scratch, OPERANDS):
    thread = thread_index()
    warp, in_warp = divide(thread, 32)
    group, lane = divide(in_warp, LANES)
    acc = cuda.local.array(G, FLOAT)
    first = cuda.local.array((HEIGHT * U + THREADS - 1) // THREADS * G, FLOAT)
    results = shared_of(FLOAT(0), scratch)
    for b0 in range(FIRST, LAST, HEIGHT):
        count = min(HEIGHT, LAST - b0)
        at0 = row_starts(b0, 1, b0 + count, K0, HEIGHT)
        x0 = rows_load(X0, at0, lane, K0, LANES, K0 * VECTOR)
        known = NOTHING
        for turn in range((HEIGHT * U + THREADS - 1) // THREADS):
            y, u = divide(thread + turn * THREADS, U)
            if y < count:
                for g in range(G):
                    first[turn * G + g] = INIT(OPERANDS, b0 + y, u, g)
                if turn == 0:
                    known = FETCH(OPERANDS, b0 + y, u)
        for begin in range(warp * (32 // LANES) * WIDTH, U * G, THREADS // LANES * WIDTH):
            row = begin + group * WIDTH
            sums = zeros_like(W0, HEIGHT * WIDTH)
            starts = row_starts(row, 1, U * G, K0, WIDTH)
            sums = held_rows_dots(sums, x0, W0, starts, lane, K0, LANES, K0 * VECTOR, RESIDENT)
            dealt = dealt_sums(sums, lane, LANES, DEALT)
            part, rest = divide(lane, LANES // DEALT)
            below, beside = divide(part * (HEIGHT * WIDTH // DEALT), WIDTH)
            rows_store(
                results, below * U * G + row + beside, 1, (below + 1) * U * G, dealt, rest == 0
            )
        cuda.syncthreads()
        for turn in range((HEIGHT * U + THREADS - 1) // THREADS):
            y, u = divide(thread + turn * THREADS, U)
            if y < count:
                for g in range(G):
                    acc[g] = first[turn * G + g] + results[(y * U + u) * G + g]
                if turn > 0:
                    known = FETCH(OPERANDS, b0 + y, u)
                STORE(OPERANDS, b0 + y, u, acc, known)
        # The next rows' sums go where these are read.
        if b0 + HEIGHT < LAST:
            cuda.syncthreads()


_THREADS, _WIDTH = 256, 8
_HELD: Final = 96
"""Elements of x that a lane has in registers, beside its sums."""


def _terms(root: Root) -> list[RowTerm]:
    """The products; none where one is not row by row."""
    found = [row_term(op) for op in root.chain]
    return [] if None in found else [term for term in found if term is not None]


def lanes_of(lengths: list[int]) -> int:
    """A group's lanes: as many as read 128 bytes at once of a row in pieces of four elements, where it has as
    many; a whole warp of single elements, or as many as there are."""
    by_fours = all(k % 4 == 0 for k in lengths)
    pieces = min(lengths) // 4 if by_fours else min(lengths)
    return min(8 if by_fours else 32, 1 << (pieces.bit_length() - 1))


def parameters_of(lengths: list[int], height: int) -> dict[str, int]:
    """The literals of a cell of products of so many terms: `DEALT` lanes of a group get sums to store."""
    lanes = lanes_of(lengths)
    dealt = min(lanes, height * _WIDTH)
    return {"LANES": lanes, "HEIGHT": height, "WIDTH": _WIDTH, "DEALT": dealt}


def _parameters(height: int):
    return lambda root: parameters_of([term.k for term in _terms(root)], height)


def _held(root: Root, height: int) -> int:
    """Elements of x that a lane has, as many as it would of an aligned one."""
    lengths = [term.k for term in _terms(root)]
    lanes = lanes_of(lengths)
    width = 4 if all(k % 4 == 0 for k in lengths) else 1
    return height * sum(-(-k // width // lanes) * width for k in lengths)


def _legal(terms: int, height: int):
    """Chains of `terms`, over at least as many rows as are taken at once, of which lanes have room for their
    parts."""

    def legal(root: Root) -> bool:
        if len(root.chain) != terms or not _terms(root):
            return False
        rows = root.parallel[0]
        if rows != DYNAMIC and rows < height:
            return False
        # A lane stores sums of one row.
        lanes = lanes_of([term.k for term in _terms(root)])
        return height <= lanes and _held(root, height) <= _HELD

    return legal


def _scratch(root: Root, parameters: Parameters) -> int:
    """The sums of the rows taken at once."""
    assert root.value is not None
    elements = parameters["HEIGHT"] * math.prod(root.parallel[1:])
    return elements * numpy_dtype(tensor_type(root.value).element_type).itemsize


def _keeps(root: Root) -> int:
    """Bytes of the weights."""
    bits = [
        (math.prod(root.parallel[1:]) * t.k, tensor_type(t.w).element_type) for t in _terms(root)
    ]
    return sum(count * numpy_dtype(kind).itemsize for count, kind in bits)


_READ: Final = 2.0
"""A word of shared memory that is read for one product, in multiply-adds of a tile in registers: 32 words a
clock against 128 products at most, of which such a tile reaches half."""
_MADE: Final = 0.6
"""A multiply-add of what is in registers, in the same."""


def _work(height: int):
    """A word of the weights is read for `height` rows at once; what each turn waits for, and what joins the
    lanes' sums."""

    def counted(part: Part) -> Work:
        units, elements = part.share((0, 1)), math.prod(part.sizes[1:])
        lengths = [term.k for term in _terms(part.root)]
        lanes, turns = lanes_of(lengths), part.rounds(part.sizes[0], height)
        words = turns * elements * sum(lengths) * part.lanes
        passes = part.rounds(elements, _THREADS // lanes * _WIDTH)
        joined = math.log2(lanes) * (1 + height * passes) / 2
        waits = work(round=1, barrier=2, shuffle=joined) * turns
        return waits + work(fma=words * max(_READ, _MADE * height)) + part.store * units

    return counted


RKERNELS = [
    RKernel(
        "cell_rows",
        f"{name}_by{height}",
        "cuda",
        __name__,
        f"cell_{name}",
        legal=_legal(terms, height),
        work=_work(height),
        scratch_bytes=_scratch,
        threads=_THREADS,
        parameters=_parameters(height),
        reassociates=True,
        anywhere=True,
        halves=True,
        vectors=tuple(f"{operand}{t}" for operand in "XW" for t in range(terms)),
        kept=tuple(f"W{t}" for t in range(terms)),
        keeps=_keeps,
        rows_at_once=height,
    )
    for terms, name in ((1, "one_term"), (2, "two_terms"))
    for height in (1, 2, 4)
]
