"""Contractions and convolutions as matrix products, tile by tile through shared memory.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)]; windows and padding are resolved where B is
fetched, so no window is ever written out. A block computes BM x BN sums, BK terms of k at a time, in
two buffers: while one is multiplied, the next terms are on their way. Each thread keeps TM x TN sums.
With KG > 1 that many groups of threads share each BK terms, for small tiles: more threads in flight
at the same reuse of what was fetched. The sums meet in shared memory and leave it row by row.

`product_direct` gives a thread one sum after another, for the few terms and rows of A that a
depthwise convolution has: nothing is worth staging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type, Float64Type

from irkit.dialects.product_memory import Run, run_of_b
from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.product_grids import cut_largest
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256


def product_tiles(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    staged = shared_of(FLOAT(0), scratch)
    next_a = cuda.local.array(BM * BK // THREADS, FLOAT)
    next_b = cuda.local.array(BN * BK // THREADS, FLOAT)
    starts = cuda.local.array(BM * BK // THREADS, int64)
    inside = cuda.local.array(BN * BK // THREADS, boolean)
    group, within = divide(thread, THREADS // KG)
    ty, tx = divide(within, BN // TN)
    a_m, a_k = divide(thread, BK)
    b_k, b_n = divide(thread, BN)
    left = group * (BK // KG) * (BM + 4) + ty * TM
    right = BK * (BM + 4) + group * (BK // KG) * (BN + 4) + tx * TN
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0, m1, BM):
                for c in range(c0, c1, BN):
                    column = COLUMN(b, lead, min(c + b_n, c1 - 1))
                    for i in range(BM * BK // THREADS):
                        row = min(m + a_m + i * (THREADS // BK), m1 - 1)
                        starts[i] = fixed((b * M + row) * K)
                    sums = zeros_like(staged, TM * TN)
                    # Turn t stages the terms from t * BK on and multiplies those before. Beyond the
                    # last there is nothing new to fetch: without a branch, loads overlap products.
                    for turn in range((K + BK - 1) // BK + 1):
                        k = min(turn, (K - 1) // BK) * BK
                        for i in range(BM * BK // THREADS):
                            at = k + a_k
                            next_a[i] = A[starts[i] + (min(at, K - 1) if K % BK else at)]
                        for i in range(BN * BK // THREADS):
                            at = k + b_k + i * (THREADS // BN)
                            step = STEP(min(at, K - 1) if K % BK else at)
                            next_b[i] = FETCH(OPERANDS, column, step)
                            inside[i] = INSIDE(column, step)
                        if turn > 0:
                            base = ((turn + 1) & 1) * (BK * (BM + BN + 8))
                            sums = tile_sums(
                                sums, staged, base + left, base + right,
                                BM + 4, BN + 4, TM, TN, BK // KG,
                            )  # fmt: skip
                        # What lies past the end of k is zero on both sides: memory may hold NaN.
                        base = (turn & 1) * (BK * (BM + BN + 8))
                        for i in range(BM * BK // THREADS):
                            place = a_k * (BM + 4) + a_m + i * (THREADS // BK)
                            ends = K % BK and k + a_k >= K
                            staged[base + place] = FLOAT(0) if ends else next_a[i]
                        for i in range(BN * BK // THREADS):
                            at = b_k + i * (THREADS // BN)
                            zero = (K % BK and k + at >= K) or not inside[i]
                            value = FLOAT(0) if zero else next_b[i]
                            staged[base + BK * (BM + 4) + at * (BN + 4) + b_n] = value
                        cuda.syncthreads()
                    tile_store(staged, (group * BM + ty * TM) * BN + tx * TN, BN, sums, TN)
                    cuda.syncthreads()
                    for i in range(BM * BN // THREADS):
                        if TRANSPOSED:
                            x, y = divide(thread + i * THREADS, BM)
                        else:
                            y, x = divide(thread + i * THREADS, BN)
                        if m + y < m1 and c + x < c1:
                            total = INIT(OPERANDS, b, m + y, lead, c + x)
                            for g in range(KG):
                                total += staged[(g * BM + y) * BN + x]
                            STORE(OPERANDS, b, m + y, lead, c + x, total)
                    cuda.syncthreads()


def product_direct(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    terms = cuda.local.array(TERMS, FLOAT)
    count = (b1 - b0) * (m1 - m0) * (l1 - l0) * (c1 - c0)
    element = thread_index()
    while element < count:
        rest, c = divide(element, c1 - c0)
        rest, lead = divide(rest, l1 - l0)
        b, m = divide(rest, m1 - m0)
        b, m, lead, c = b0 + b, m0 + m, l0 + lead, c0 + c
        column = COLUMN(b, lead, c)
        acc = INIT(OPERANDS, b, m, lead, c)
        for k in range(0, K, TERMS):
            # All loads first, so that they are on their way together.
            for i in range(TERMS):
                terms[i] = FETCH(OPERANDS, column, STEP(min(k + i, K - 1)))
            for i in range(TERMS):
                # Behind the last term nothing is added: infinity times 0 is NaN.
                if k + i < K:
                    value = terms[i] if INSIDE(column, STEP(k + i)) else FLOAT(0)
                    acc += A[(b * M + m) * K + k + i] * value
        STORE(OPERANDS, b, m, lead, c, acc)
        element += THREADS


_TILES: dict[str, Mapping[str, int]] = {
    "64x128": {"BM": 64, "BN": 128, "BK": 16, "TM": 8, "TN": 4, "KG": 1},
    "64x64": {"BM": 64, "BN": 64, "BK": 16, "TM": 4, "TN": 4, "KG": 1},
    "64x32": {"BM": 64, "BN": 32, "BK": 32, "TM": 4, "TN": 4, "KG": 2},
    "32x64": {"BM": 32, "BN": 64, "BK": 32, "TM": 4, "TN": 4, "KG": 2},
    "32x32": {"BM": 32, "BN": 32, "BK": 32, "TM": 4, "TN": 4, "KG": 4},
    "16x32": {"BM": 16, "BN": 32, "BK": 64, "TM": 4, "TN": 4, "KG": 8},
    "16x256": {"BM": 16, "BN": 256, "BK": 16, "TM": 4, "TN": 4, "KG": 1},
}
# Of products that tiles of 16x256 are for: convolutions of few filters over many pixels.
_FEW_ROWS, _MANY_COLUMNS = 16, 1 << 12
# It has this many loads on their way at once, at most.
_MOST_TERMS = 32


def _legal(root: Root) -> bool:
    """Floats, sizes that are known and fit 32 bits, and more than a vector on each side."""
    if DYNAMIC in root.parallel:
        return False
    product = as_product(root)
    if product is None:
        return False
    columns = product.extent((*product.lead, *product.columns))
    return fits(product) and product.extent(product.m) >= 4 and columns >= 4


def _legal_flat(root: Root) -> bool:
    """Few rows, and many columns: of others most of such tiles would be empty, or most vEUs without one."""
    if not _legal(root):
        return False
    product = product_of(root)
    return (
        product.extent(product.m) <= _FEW_ROWS and product.extent(product.columns) >= _MANY_COLUMNS
    )


def fits(product: Product) -> bool:
    """Floats, and positions that fit 32 bits."""
    element = tensor_type(product.op.results[0]).element_type
    sizes = [math.prod(tensor_type(v).get_shape()) for v in product.op.inputs]
    return isinstance(element, Float32Type | Float64Type) and max(sizes) < 1 << 31


def product_of(root: Root) -> Product:
    product = as_product(root)
    assert product is not None
    return product


def run_of(root: Root) -> Run | None:
    """How B of a root that is a product can be read from memory; None if it is computed."""
    # As of `as_product`: many grids are tried of a product, and the cost of each asks how B lies.
    if "run" not in root.counted:
        root.counted["run"] = run_of_b(product_of(root))
    return root.counted["run"]


def _scratch(root: Root, tile: Parameters) -> int:
    """Two buffers of both tiles, with rows padded by four against bank conflicts; or all sums."""
    terms = 2 * tile["BK"] * (tile["BM"] + tile["BN"] + 8)
    sums = tile["KG"] * tile["BM"] * tile["BN"]
    element = tensor_type(product_of(root).op.results[0]).element_type
    return max(terms, sums) * numpy_dtype(element).itemsize


def tiling_of(tile: Mapping[str, int], root: Root) -> Tiling:
    return Tiling(tile["BM"], tile["BN"])


def _apart(root: Root) -> int:
    """How dear it is to find an element of B. Threads side by side read columns: where terms lie so,
    each reads a part of memory of its own."""
    run = run_of(root)
    if run is None or not run.fours:
        return 1
    return 2 if run.by_k else 0


def _work(tile: Mapping[str, int]):
    """BK terms at a time: products, the wait for the next terms, and finding them in windows."""

    def counted(part: Part) -> Work:
        tiles = tiling_of(tile, part.root).of_part(part)
        steps = tiles * math.ceil(part.terms / tile["BK"])
        sums = steps * tile["BM"] * tile["BN"] * tile["BK"] * part.lanes
        found = _apart(part.root) * (steps + tiles) * tile["BN"] * tile["BK"]
        # Where channels lie side by side, threads that store neighbours read sums that lie apart.
        product = product_of(part.root)
        ends = tiles * (2 if product.transposed and len(product.columns) > 1 else 1)
        return work(tile=ends, step=steps, fma=sums, pack=found) + part.store * part.elements

    return counted


def _few_terms(root: Root) -> bool:
    """A convolution of one channel or few, as a depthwise one is."""
    product = as_product(root)
    if product is None or DYNAMIC in root.parallel or not fits(product):
        return False
    return product.extent(product.k) <= 128 and product.extent(product.m) <= 4


def _direct_rounds(part: Part) -> int:
    return part.rounds(part.elements, THREADS_PER_BLOCK)


def _direct_work(part: Part) -> Work:
    """The loads of a pass go out together."""
    rounds = _direct_rounds(part)
    terms = work(term=part.terms * THREADS_PER_BLOCK, round=math.ceil(part.terms / _MOST_TERMS))
    return terms * rounds + part.store * part.elements


def _terms(root: Root) -> Mapping[str, int]:
    """All terms in as many equal passes as it takes."""
    terms = product_of(root).extent(product_of(root).k)
    return {"TERMS": math.ceil(terms / math.ceil(terms / _MOST_TERMS))}


RKERNELS = [
    *(
        RKernel(
            "product",
            f"tile{name}",
            "cuda",
            __name__,
            "product_tiles",
            legal=_legal_flat if name == "16x256" else _legal,
            reassociates=True,
            halves=True,
            scratch_bytes=_scratch,
            threads=THREADS_PER_BLOCK,
            parameters=tile,
            grid=cut_into_tiles(partial(tiling_of, tile)),
            work=_work(tile),
        )
        for name, tile in _TILES.items()
    ),
    RKernel(
        "product",
        "direct",
        "cuda",
        __name__,
        "product_direct",
        legal=_few_terms,
        parameters=_terms,
        halves=True,
        choices={"TERMS": range(1, _MOST_TERMS + 1)},
        grid=cut_largest(_direct_rounds),
        work=_direct_work,
    ),
]
