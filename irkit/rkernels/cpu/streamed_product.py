"""product.streamed: few rows times a matrix that no cache holds, which is read where it lies.

C[m, c] = sum_k A[m, k] * B[k, c]. Each element of B is used for a few rows alone, so copying it takes longer
than what it is copied for, and a panel of all terms of a few columns reads a line here and a line there.
Here DEPTH rows of B are read side by side from their first column to their last, as memory gives them
fastest, and what they add to the sums goes to scratch that stays in the second-level cache. So many runs are
more than a processor follows by itself, so what comes next in each is fetched by name.
"""

import math
from collections.abc import Callable

from irkit.dialects.product_memory import matrix_of_b
from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cpu.product import LARGE, PANEL_BYTES, SMALL, Tile, fitted_tile, itemsize
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_DEPTH = 16
_MOST_ROWS = 32
_FEWEST_COLUMNS = 256
_SUMS_BYTES = 1 << 18


def product_streamed(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    sums = POINTER(scratch)
    for c in range(c0, c1, NC):
        count = min(NC, c1 - c)
        for k in range(0, K, DEPTH):
            depth = min(DEPTH, K - k)
            for q in range(0, count, LANES * ACROSS):
                for m in range(m0, m1, TILE):
                    n = min(TILE, m1 - m)
                    at = (m - m0) * NC + q
                    if count - q >= LANES * ACROSS:
                        add_tile(
                            TILE, ACROSS, LANES, n, depth, A, m * K + k, K, B, k * COLUMNS + c + q,
                            COLUMNS, sums, at, NC, int64(k == 0),
                        )  # fmt: skip
                    else:
                        for i in range(n):
                            for j in range(count - q):
                                if k == 0:
                                    sums[at + i * NC + j] = 0
                                for t in range(depth):
                                    factor = A[(m + i) * K + k + t]
                                    term = factor * B[(k + t) * COLUMNS + c + q + j]
                                    sums[at + i * NC + j] += term
        for m in range(m0, m1):
            for j in range(count):
                total = sums[(m - m0) * NC + j] + INIT(OPERANDS, 0, m, 0, c + j)
                STORE(OPERANDS, 0, m, 0, c + j, total)


def _product(root: Root) -> Product:
    product = as_product(root)
    assert product is not None
    return product


def _legal(root: Root) -> bool:
    """Few rows of A; B a matrix in memory, column beside column, of the sums' type, that no cache holds."""
    product = as_product(root)
    if product is None or product.transposed or matrix_of_b(product) is not False:
        return False
    rows, columns, terms = (product.extent(d) for d in (product.m, product.columns, product.k))
    if DYNAMIC in (rows, columns) or not 2 <= rows <= _MOST_ROWS or columns < _FEWEST_COLUMNS:
        return False
    sums = tensor_type(product.op.results[0]).element_type
    alike = all(tensor_type(i).element_type == sums for i in product.op.inputs)
    return alike and terms * columns * itemsize(root) > PANEL_BYTES


def _parameters(most: Tile) -> Callable[[Root], Parameters]:
    """NC: columns whose sums stay in the second-level cache."""

    def parameters(root: Root) -> Parameters:
        product, tile = _product(root), fitted_tile(root, most)
        columns = -(-product.extent(product.columns) // tile.columns)
        fit = _SUMS_BYTES // (product.extent(product.m) * itemsize(root) * tile.columns)
        return {
            "ACROSS": tile.across,
            "DEPTH": _DEPTH,
            "LANES": tile.lanes,
            "NC": max(1, min(columns, fit)) * tile.columns,
            "TILE": tile.rows,
        }

    return parameters


def _scratch(root: Root, parameters: Parameters) -> int:
    """The sums."""
    product = _product(root)
    return product.extent(product.m) * parameters["NC"] * itemsize(root)


def _work(most: Tile, kind: str) -> Callable[[Part], Work]:
    """Tiles as of `product`, each begun and finished, and its sums read and written, once in DEPTH terms."""

    def counted(part: Part) -> Work:
        product, tile = _product(part.root), fitted_tile(part.root, most)
        words = itemsize(part.root) / 4
        rows, columns, terms = (part.share(d) for d in (product.m, product.columns, product.k))
        computed, high = tile.computed(rows)
        across, times = math.ceil(columns / tile.columns), math.ceil(terms / _DEPTH)
        tiles = work(
            **{kind: computed * across * tile.columns * words * terms},
            tile=high * across * times,
            op=rows * columns * words * times,
        )
        outputs = (part.store + work(scalar=1)) * (rows * columns) + work(row=rows)
        return tiles + outputs

    return counted


RKERNELS = [
    RKernel(
        "product",
        variant,
        "cpu",
        __name__,
        "product_streamed",
        legal=_legal,
        work=_work(tile, kind),
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=_parameters(tile),
    )
    for variant, tile, kind in (("streamed", SMALL, "fma"), ("streamed_wide", LARGE, "wide"))
]
