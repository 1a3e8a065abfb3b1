"""A cell of a recurrent network: G sums a unit, of one product or two, and then the unit's new state.

LANES lanes share a row of weights, PASS rows at a time; x and h stay in registers. Rows are unit by
unit, gate by gate, so those of an rTask are contiguous, and a resident copy of them serves as well:
RESIDENT 1 promises that the weights are in shared memory. VECTOR 1 needs operands whose addresses are
multiples of 16. What the sums start from, and what the new state is made of beside them, is read before the
products, to hide its latency.
A last pass of few rows takes one row a group at a time, so that no row is computed for nothing.
"""

import math
from typing import Final

from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.row_terms import multiply_adds
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def cell_two_terms(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    thread = thread_index()
    group, lane = divide(thread, LANES)
    acc = cuda.local.array(G, FLOAT)
    turn = 0
    for b in range(BATCH):
        x0 = lane_load(X0, b * K0, lane, K0, LANES, K0 * VECTOR)
        x1 = lane_load(X1, b * K1, lane, K1, LANES, K1 * VECTOR)
        for u in range(u0, u1, PASS * (THREADS // LANES) // G):
            units = min(PASS * (THREADS // LANES) // G, u1 - u)
            known = NOTHING
            if thread < units:
                for g in range(G):
                    acc[g] = INIT(OPERANDS, b, u + thread, g)
                known = FETCH(OPERANDS, b, u + thread)
            # Two buffers in turn: one barrier a pass is enough.
            offset = turn * PASS * (THREADS // LANES) * itemsize(acc)
            results = shared_of(FLOAT(0), scratch + offset)
            if units * G > PASS * (THREADS // LANES) // 2:
                sums = zeros_like(W0, PASS)
                starts = row_starts(u * G + group, THREADS // LANES, u1 * G, K0, PASS)
                sums = lane_dots(sums, x0, W0, starts, 0, lane, K0, LANES, K0 * VECTOR, RESIDENT)
                starts = row_starts(u * G + group, THREADS // LANES, u1 * G, K1, PASS)
                sums = lane_dots(sums, x1, W1, starts, 0, lane, K1, LANES, K1 * VECTOR, RESIDENT)
                sums = group_sums(sums, LANES)
                rows_store(results, group, THREADS // LANES, units * G, sums, lane == 0)
            else:
                for row in range(0, units * G, THREADS // LANES):
                    one = zeros_like(W0, 1)
                    at = row_starts(u * G + row + group, 1, u1 * G, K0, 1)
                    one = lane_dots(one, x0, W0, at, 0, lane, K0, LANES, K0 * VECTOR, RESIDENT)
                    at = row_starts(u * G + row + group, 1, u1 * G, K1, 1)
                    one = lane_dots(one, x1, W1, at, 0, lane, K1, LANES, K1 * VECTOR, RESIDENT)
                    one = group_sums(one, LANES)
                    rows_store(results, row + group, 1, units * G, one, lane == 0)
            cuda.syncthreads()
            if thread < units:
                for g in range(G):
                    acc[g] += results[thread * G + g]
                STORE(OPERANDS, b, u + thread, acc, known)
            turn ^= 1


def cell_one_term(task, tasks, rows, scratch, OPERANDS):
    u0, u1 = UNITS(task, tasks)
    thread = thread_index()
    group, lane = divide(thread, LANES)
    acc = cuda.local.array(G, FLOAT)
    turn = 0
    for b in range(BATCH):
        x0 = lane_load(X0, b * K0, lane, K0, LANES, K0 * VECTOR)
        for u in range(u0, u1, PASS * (THREADS // LANES) // G):
            units = min(PASS * (THREADS // LANES) // G, u1 - u)
            known = NOTHING
            if thread < units:
                for g in range(G):
                    acc[g] = INIT(OPERANDS, b, u + thread, g)
                known = FETCH(OPERANDS, b, u + thread)
            offset = turn * PASS * (THREADS // LANES) * itemsize(acc)
            results = shared_of(FLOAT(0), scratch + offset)
            if units * G > PASS * (THREADS // LANES) // 2:
                sums = zeros_like(W0, PASS)
                starts = row_starts(u * G + group, THREADS // LANES, u1 * G, K0, PASS)
                sums = lane_dots(sums, x0, W0, starts, 0, lane, K0, LANES, K0 * VECTOR, RESIDENT)
                sums = group_sums(sums, LANES)
                rows_store(results, group, THREADS // LANES, units * G, sums, lane == 0)
            else:
                for row in range(0, units * G, THREADS // LANES):
                    one = zeros_like(W0, 1)
                    at = row_starts(u * G + row + group, 1, u1 * G, K0, 1)
                    one = lane_dots(one, x0, W0, at, 0, lane, K0, LANES, K0 * VECTOR, RESIDENT)
                    one = group_sums(one, LANES)
                    rows_store(results, row + group, 1, units * G, one, lane == 0)
            cuda.syncthreads()
            if thread < units:
                for g in range(G):
                    acc[g] += results[thread * G + g]
                STORE(OPERANDS, b, u + thread, acc, known)
            turn ^= 1


# K elements are held in K / LANES registers a thread, so that long vectors need more lanes.
_LANES = {"lanes16": (16, 512), "lanes32": (32, None)}
_PASS = 5


def _legal(terms: int, longest: int | None, gates: int):
    """Chains of `terms`, at most `gates` sums a unit."""

    def legal(root: Root) -> bool:
        if len(root.chain) != terms:
            return False
        found = [row_term(op) for op in root.chain]
        if None in found or math.prod(root.parallel[2:]) > gates:
            return False
        return longest is None or max(term.k for term in found) <= longest

    return legal


_ROWS: Final = 1.7
"""Times as long as what is counted where rows follow one another: by cells of 5 and 16 rows on an H200."""


def _work(lanes: int):
    def counted(part: Part) -> Work:
        units = part.share((0, 1))
        gates = part.elements / units
        passes = part.sizes[0] * part.rounds(part.sizes[1] * gates, _PASS * (part.threads // lanes))
        waits = work(round=len(part.root.chain), shuffle=math.log2(lanes), barrier=1) * passes
        more = _ROWS if part.sizes[0] > 1 else 1.0
        return (waits + work(dot=multiply_adds(part))) * more + part.store * units

    return counted


RKERNELS = [
    RKernel(
        "recurrent_cell",
        f"{name}_{variant}",
        "cuda",
        __name__,
        f"cell_{name}",
        legal=_legal(terms, longest, _PASS * (256 // lanes)),
        work=_work(lanes),
        scratch_bytes=2 * _PASS * (256 // lanes) * 8,
        threads=256,
        parameters={"LANES": lanes, "PASS": _PASS},
        reassociates=True,
        anywhere=True,
        halves=True,
        vectors=tuple(f"{operand}{t}" for operand in "XW" for t in range(terms)),
        kept=tuple(f"W{t}" for t in range(terms)),
    )
    for terms, name in ((1, "one_term"), (2, "two_terms"))
    for variant, (lanes, longest) in _LANES.items()
]
