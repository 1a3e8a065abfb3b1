"""attention: tiles of rows against blocks of keys, the softmax going along.

Keys (as columns) and values of a head are packed into scratch once. For a tile of rows, scores of a block of
keys are computed in vector registers, then raised; what was summed of earlier blocks is scaled down where a
larger score turns up, so that scores are never there all at once: M. Milakov and N. Gimelshein, Online
normalizer calculation for softmax, arXiv:1805.02867; T. Dao, FlashAttention-2, arXiv:2307.08691.
"""

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.attention import Loops, score, seen
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

LANES = 16
_MOST_KEYS = 128


def attention_blocks(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    memory = POINTER(scratch)
    values = BLOCKS * BLOCK * SIZE
    queries = values + KEYS * WIDTH
    scores = queries + TILE * SIZE
    parts = scores + TILE * BLOCK
    sums = parts + TILE * WIDTH
    largest = STACK(TILE)
    totals = STACK(TILE)
    factors = STACK(TILE)
    last = max(min(i1 + DIAGONAL, KEYS), 0) if CAUSAL else KEYS
    for b in range(b0, b1):
        for j in range(last):
            column = j // BLOCK * BLOCK * SIZE + j % BLOCK
            for e in range(SIZE):
                memory[column + e * BLOCK] = LOAD_K(OPERANDS, b, j, e)
        for j in range(last):
            for e in range(COLUMNS):
                memory[values + j * WIDTH + e] = LOAD_V(OPERANDS, b, j, e)
        for i in range(i0, i1, TILE):
            n = min(TILE, i1 - i)
            for t in range(n):
                for e in range(SIZE):
                    memory[queries + t * SIZE + e] = LOAD_Q(OPERANDS, b, i + t, e) * SCALE
                for e in range(WIDTH):
                    memory[sums + t * WIDTH + e] = FLOAT(0)
                largest[t] = FLOAT(-math.inf)
                totals[t] = FLOAT(0)
            ends = max(min(i + n + DIAGONAL, KEYS), 0) if CAUSAL else KEYS
            for k in range(0, ends, BLOCK):
                count = min(BLOCK, ends - k)
                for q in range(0, count, LANES * ACROSS):
                    multiply_strided(
                        TILE, ACROSS, n, SIZE, memory, queries, SIZE, memory, k * SIZE + q, BLOCK,
                        memory, scores + q, BLOCK,
                    )  # fmt: skip
                for t in range(n):
                    row = POINTER(scratch + BYTES * (scores + t * BLOCK))
                    if MASKED:
                        for j in range(count):
                            row[j] = SCORE(OPERANDS, b, i + t, k + j, row[j])
                    if CAUSAL:
                        for j in range(max(i + t + DIAGONAL + 1 - k, 0), count):
                            row[j] = FLOAT(-math.inf)
                    top = row_maximum(row, count)
                    top = top if (top > largest[t] or top != top) else largest[t]
                    # Where no key has been seen yet, all weights are zero.
                    shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                    for j in range(count):
                        row[j] = EXP(row[j] - shift)
                    factors[t] = EXP(largest[t] - shift)
                    totals[t] = totals[t] * factors[t] + row_sum(row, count)
                    largest[t] = top
                for q in range(0, WIDTH, LANES * BESIDE):
                    multiply_strided(
                        TILE, BESIDE, n, count, memory, scores, BLOCK, memory,
                        values + k * WIDTH + q, WIDTH, memory, parts + q, WIDTH,
                    )  # fmt: skip
                for t in range(n):
                    for e in range(WIDTH):
                        at = t * WIDTH + e
                        memory[sums + at] = memory[sums + at] * factors[t] + memory[parts + at]
            for t in range(n):
                for e in range(COLUMNS):
                    portion = PORTION(memory[sums + t * WIDTH + e], totals[t])
                    STORE(OPERANDS, b, i + t, e, portion)
                if PARTED:
                    STORE(OPERANDS, b, i + t, COLUMNS, largest[t] + math.log(totals[t]))


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def _parameters(tile: int, across: int) -> Callable[[Root], Parameters]:
    """BLOCK: keys whose scores are there at once; WIDTH: elements of a value in memory; ACROSS and BESIDE:
    vectors of a tile of scores, and of one of sums."""

    def parameters(root: Root) -> Parameters:
        loops = Loops.of(root)
        beside = min(across, _up(loops.columns, LANES) // LANES)
        step = LANES * across
        blocks = math.ceil(loops.keys / _MOST_KEYS)
        block = _up(math.ceil(loops.keys / blocks), step)
        return {
            "ACROSS": across,
            "BESIDE": beside,
            "BLOCK": block,
            "BLOCKS": math.ceil(loops.keys / block),
            "BYTES": _itemsize(root),
            "LANES": LANES,
            "TILE": tile,
            "WIDTH": _up(loops.columns, LANES * beside),
        }

    return parameters


def _itemsize(root: Root) -> int:
    return numpy_dtype(tensor_type(Loops.of(root).op.y).element_type).itemsize


def _scratch(root: Root, p: Parameters) -> int:
    """Keys, values, and for a tile queries, scores, and sums of a block and of all."""
    loops = Loops.of(root)
    head = p["BLOCKS"] * p["BLOCK"] * loops.size + loops.keys * p["WIDTH"]
    rows = p["TILE"] * (loops.size + p["BLOCK"] + 2 * p["WIDTH"])
    return (head + rows) * p["BYTES"]


_SWEPT = 6
"""Simple ops that the sweeps of a score take, beside its exponential."""


def _work(tile: int, across: int, kind: str) -> Callable[[Part], Work]:
    """Whole tiles are computed; keys and values are packed once for all rows of a part."""

    def counted(part: Part) -> Work:
        loops, p = Loops.of(part.root), _parameters(tile, across)(part.root)
        lead, rows, keys = seen(part)
        whole = math.ceil(rows / tile) * tile
        products = whole * keys * (loops.size + p["WIDTH"])
        packed = (part.fused(loops.op.key) + work(pack=1)) * (keys * loops.size)
        packed += (part.fused(loops.op.value) + work(pack=1)) * (keys * loops.columns)
        blocks = math.ceil(keys / p["BLOCK"])
        scores = (score(part) + work(op=_SWEPT * part.lanes)) * (rows * keys)
        ends = (part.store + work(op=2.0 * blocks * part.lanes)) * (rows * loops.columns)
        tiles = work(**{kind: products}, tile=2 * whole / tile * blocks, row=3 * rows * blocks)
        return (tiles + packed + scores + ends + part.fused(loops.op.query) * rows) * lead

    return counted


RKERNELS = [
    RKernel(
        "attention",
        variant,
        "cpu",
        __name__,
        "attention_blocks",
        work=_work(tile, across, kind),
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=_parameters(tile, across),
    )
    for variant, tile, across, kind in (("blocked", 4, 1, "fma"), ("wide", 8, 2, "wide"))
]
