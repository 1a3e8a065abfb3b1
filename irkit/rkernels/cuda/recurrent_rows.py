"""A cell of a recurrent network for several rows of the batch: weights are read once for ROWS rows of x.

The rows of x lie in shared memory, ROWS at a time, and so do the weights where RESIDENT is 1. A group of
LANES lanes has a tile of HEIGHT rows of x and WIDTH rows of weights, whose sums stay in registers: what it
reads serves HEIGHT or WIDTH products. DOWN warps have the rows of x of one turn, one below another; all
others the rows of weights beside them, which are unit by unit, gate by gate. VECTOR 1 needs operands whose
addresses are multiples of 16. What the sums start from is read before the products, to hide its latency.
"""

import math
from typing import Final

from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def rows_two_terms(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    thread = thread_index()
    warp, in_warp = divide(thread, 32)
    beside, down = divide(warp, DOWN)
    group, lane = divide(in_warp, LANES)
    acc = cuda.local.array(G, FLOAT)
    first = cuda.local.array((ROWS * (SPAN // G) + THREADS - 1) // THREADS * G, FLOAT)
    staged = shared_of(FLOAT(0), scratch)
    results = shared_of(FLOAT(0), scratch + ROWS * (K0 + K1) * itemsize(acc))
    for b0 in range(0, B, ROWS):
        count = min(ROWS, B - b0)
        rows_to_shared(staged, 0, X0, b0 * K0, count * K0, thread, ROWS * K0, THREADS, K0 * VECTOR)
        rows_to_shared(
            staged, ROWS * K0, X1, b0 * K1, count * K1, thread, ROWS * K1, THREADS, K1 * VECTOR
        )
        cuda.syncthreads()
        for u in range(u0, u1, SPAN // G):
            units = min(SPAN // G, u1 - u)
            for turn in range((ROWS * (SPAN // G) + THREADS - 1) // THREADS):
                y, v = divide(thread + turn * THREADS, SPAN // G)
                if y < count and v < units:
                    for g in range(G):
                        first[turn * G + g] = INIT(OPERANDS, b0 + y, u + v, g)
            row = (beside * (32 // LANES) + group) * WIDTH
            sums = zeros_like(W0, HEIGHT * WIDTH)
            at = row_starts(down * HEIGHT, 1, ROWS, K0, HEIGHT)
            starts = row_starts(u * G + row, 1, u1 * G, K0, WIDTH)
            sums = rows_dots(sums, staged, at, W0, starts, lane, K0, LANES, K0 * VECTOR, RESIDENT)
            after = shared_of(FLOAT(0), scratch + ROWS * K0 * itemsize(acc))
            at = row_starts(down * HEIGHT, 1, ROWS, K1, HEIGHT)
            starts = row_starts(u * G + row, 1, u1 * G, K1, WIDTH)
            sums = rows_dots(sums, after, at, W1, starts, lane, K1, LANES, K1 * VECTOR, RESIDENT)
            dealt = dealt_sums(sums, lane, LANES, HEIGHT)
            below, rest = divide(lane, LANES // HEIGHT)
            place = (down * HEIGHT + below) * SPAN
            rows_store(results, place + row, 1, place + SPAN, dealt, rest == 0)
            cuda.syncthreads()
            for turn in range((ROWS * (SPAN // G) + THREADS - 1) // THREADS):
                y, v = divide(thread + turn * THREADS, SPAN // G)
                if y < count and v < units:
                    for g in range(G):
                        acc[g] = first[turn * G + g] + results[y * SPAN + v * G + g]
                    known = FETCH(OPERANDS, b0 + y, u + v)
                    STORE(OPERANDS, b0 + y, u + v, acc, known)
            # The next turn writes where this one reads.
            cuda.syncthreads()


def rows_one_term(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    thread = thread_index()
    warp, in_warp = divide(thread, 32)
    beside, down = divide(warp, DOWN)
    group, lane = divide(in_warp, LANES)
    acc = cuda.local.array(G, FLOAT)
    first = cuda.local.array((ROWS * (SPAN // G) + THREADS - 1) // THREADS * G, FLOAT)
    staged = shared_of(FLOAT(0), scratch)
    results = shared_of(FLOAT(0), scratch + ROWS * K0 * itemsize(acc))
    for b0 in range(0, B, ROWS):
        count = min(ROWS, B - b0)
        rows_to_shared(staged, 0, X0, b0 * K0, count * K0, thread, ROWS * K0, THREADS, K0 * VECTOR)
        cuda.syncthreads()
        for u in range(u0, u1, SPAN // G):
            units = min(SPAN // G, u1 - u)
            for turn in range((ROWS * (SPAN // G) + THREADS - 1) // THREADS):
                y, v = divide(thread + turn * THREADS, SPAN // G)
                if y < count and v < units:
                    for g in range(G):
                        first[turn * G + g] = INIT(OPERANDS, b0 + y, u + v, g)
            row = (beside * (32 // LANES) + group) * WIDTH
            sums = zeros_like(W0, HEIGHT * WIDTH)
            at = row_starts(down * HEIGHT, 1, ROWS, K0, HEIGHT)
            starts = row_starts(u * G + row, 1, u1 * G, K0, WIDTH)
            sums = rows_dots(sums, staged, at, W0, starts, lane, K0, LANES, K0 * VECTOR, RESIDENT)
            dealt = dealt_sums(sums, lane, LANES, HEIGHT)
            below, rest = divide(lane, LANES // HEIGHT)
            place = (down * HEIGHT + below) * SPAN
            rows_store(results, place + row, 1, place + SPAN, dealt, rest == 0)
            cuda.syncthreads()
            for turn in range((ROWS * (SPAN // G) + THREADS - 1) // THREADS):
                y, v = divide(thread + turn * THREADS, SPAN // G)
                if y < count and v < units:
                    for g in range(G):
                        acc[g] = first[turn * G + g] + results[y * SPAN + v * G + g]
                    known = FETCH(OPERANDS, b0 + y, u + v)
                    STORE(OPERANDS, b0 + y, u + v, acc, known)
            # The next turn writes where this one reads.
            cuda.syncthreads()


# Rows of weights of a turn: WIDTH for each group of lanes of the warps that are beside one another.
_WIDTH, _THREADS = 5, 256


def _parameters(height: int, down: int, lanes: int) -> dict[str, int]:
    span = _THREADS // 32 // down * (32 // lanes) * _WIDTH
    return {
        "LANES": lanes,
        "HEIGHT": height,
        "WIDTH": _WIDTH,
        "DOWN": down,
        "ROWS": height * down,
        "SPAN": span,
    }


_TILES = {"rows4": _parameters(4, 1, 16), "rows16": _parameters(8, 2, 8)}


def _lengths(root: Root) -> list[int]:
    """Terms of each product; none where one is not row by row."""
    found = [row_term(op) for op in root.chain]
    return [] if None in found else [term.k for term in found if term is not None]


def _legal(terms: int, tile: Parameters):
    """Chains of `terms` over several rows of a known number, whose gates of a unit fit a turn."""

    def legal(root: Root) -> bool:
        rows = root.parallel[0]
        if len(root.chain) != terms or rows == DYNAMIC or rows < 2 or not _lengths(root):
            return False
        return math.prod(root.parallel[2:]) <= tile["SPAN"]

    return legal


def _scratch(root: Root, parameters: Parameters) -> int:
    """Rows of x, and the sums of a turn."""
    assert root.value is not None
    elements = parameters["ROWS"] * (sum(_lengths(root)) + parameters["SPAN"])
    return elements * numpy_dtype(tensor_type(root.value).element_type).itemsize


_GROUP: Final = {"round": 5.0, "chain": 0.39}
"""What a group of rows waits for, and what for each of its terms: by cells of 64 to 512 units and 5 to 64
rows, alone and ten at a time on an H200, most of whose time that is."""
_BUSY: Final = 0.25
"""How much of its multiply-adds does not go by meanwhile."""


def _work(tile: Parameters):
    """Whole tiles are computed; what each turn waits for."""

    def counted(part: Part) -> Work:
        units = part.share((0, 1))
        gates = math.prod(part.sizes[2:])
        groups = part.rounds(part.sizes[0], tile["ROWS"])
        turns = groups * part.rounds(part.sizes[1], tile["SPAN"] // gates)
        lengths = _lengths(part.root)
        sums = turns * tile["ROWS"] * tile["SPAN"] * sum(lengths) * part.lanes
        chain = _GROUP["chain"] * sum(lengths)
        waits = work(round=_GROUP["round"], chain=chain, barrier=3) * groups
        waits = waits + work(barrier=2, shuffle=4) * turns
        return waits + work(fma=_BUSY * sums * _reads(tile)) + part.store * units

    return counted


def _reads(tile: Parameters) -> float:
    """Reads of shared memory that a multiply-add takes, by those of a tile of 4 × 4 in registers."""
    return (tile["HEIGHT"] + tile["WIDTH"]) / (tile["HEIGHT"] * tile["WIDTH"]) / 0.5


RKERNELS = [
    RKernel(
        "recurrent_cell",
        f"{name}_{variant}",
        "cuda",
        __name__,
        f"rows_{name}",
        legal=_legal(terms, tile),
        work=_work(tile),
        scratch_bytes=_scratch,
        threads=_THREADS,
        parameters=tile,
        reassociates=True,
        anywhere=True,
        vectors=tuple(f"{operand}{t}" for operand in "XW" for t in range(terms)),
        kept=tuple(f"W{t}" for t in range(terms)),
    )
    for terms, name in ((1, "one_term"), (2, "two_terms"))
    for variant, tile in _TILES.items()
]
