"""panel_product: contractions as blocked matrix products of which both operands are packed.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)]. Blocks of MC rows, NC columns and KC terms of A and B
are packed as panels of a tile's rows and columns, and block after block of k is added to the sums; NEAR
columns stay in the second-level cache meanwhile. So it does not matter how operands lie, nor how many
terms there are. After K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM
TOMS 34(3), 2008.
"""

import math
from collections.abc import Callable

from irkit.dialects.panel_products import as_panel_product, turned
from irkit.dialects.products import Product, as_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.binding.panels import turns, walk_of
from irkit.rkernels.cpu.product import (
    LARGE,
    MOST_COLUMNS,
    PANEL_BYTES,
    SMALL,
    Tile,
    fitted,
    itemsize,
)
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_TERMS, _ROWS, _COLUMNS = 256, 512, 1024
"""What a block has at most: large, since A is copied for each block of columns and B for each of rows. Sums
stay in the third-level cache, and are fetched while a tile adds to them."""
_NEAR = 256
"""Columns of B that all of A's block is multiplied with before the next, from the second-level cache."""


def panel_product(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    panel = POINTER(scratch)
    right = MC * KC
    sums = right + NC * KC
    blocks = max((m1 - m0 + MC - 1) // MC, 1)
    most = ((m1 - m0 + blocks - 1) // blocks + TILE - 1) // TILE * TILE
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0, m1, most):
                height = min(most, m1 - m)
                for c in range(c0, c1, NC):
                    count = min(NC, c1 - c)
                    for k in range(0, K, KC):
                        depth = min(KC, K - k)
                        for t in range(0, depth, DEEP_A):
                            deep = min(DEEP_A, depth - t)
                            for i in range(0, height, TILE):
                                n = min(TILE, height - i)
                                at = i * KC + t * TILE
                                PACK_A(OPERANDS, b, 0, m + i, n, k + t, deep, panel, at)
                        for t in range(0, depth, DEEP_B):
                            deep = min(DEEP_B, depth - t)
                            for j in range(0, count, LANES * ACROSS):
                                n = min(LANES * ACROSS, count - j)
                                at = right + j * KC + t * LANES * ACROSS
                                PACK_B(OPERANDS, b, lead, c + j, n, k + t, deep, panel, at)
                        for near in range(0, count, NEAR):
                            for i in range(0, height, TILE):
                                n = min(TILE, height - i)
                                for j in range(near, min(near + NEAR, count), LANES * ACROSS):
                                    multiply_panels(
                                        TILE, ACROSS, LANES, n, depth, panel, i * KC, right + j * KC,
                                        sums + i * NC + j, NC, int64(k == 0),
                                    )  # fmt: skip
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(height):
                                at = sums + i * NC + j
                                total = panel[at] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, total)
                    else:
                        for i in range(height):
                            at = sums + i * NC - c
                            STORE_COLUMNS(OPERANDS, b, m + i, lead, c, c + count, panel, at)


def _product(root: Root) -> Product:
    product = as_panel_product(root)
    assert product is not None
    return product


def _even(size: int, most: int, step: int) -> int:
    """The least multiple of `step` by which `size` are as few parts as by `most`."""
    if size == DYNAMIC:
        return most
    parts = -(-size // most)
    return -(-size // (parts * step)) * step


def _parameters(tile: Tile) -> Callable[[Root], Parameters]:
    def parameters(root: Root) -> Parameters:
        product = _product(root)
        fit = fitted(product, itemsize(root), tile)
        return {
            "ACROSS": fit.across,
            "KC": _even(product.extent(product.k), _TERMS, 1),
            "LANES": fit.lanes,
            "MC": _even(product.extent(product.m), _ROWS, fit.rows),
            "NC": _even(product.extent(product.columns), _COLUMNS, fit.columns),
            "NEAR": _NEAR // fit.columns * fit.columns,
            "TILE": fit.rows,
        }

    return parameters


def _legal(root: Root) -> bool:
    """Two rows and columns at least, of what `product`, which copies one operand alone, cannot take, or has
    too many terms for."""
    product, other = _product(root), as_product(root)
    sizes = [product.extent(dims) for dims in (product.m, product.columns)]
    if any(size != DYNAMIC and size < 2 for size in sizes):
        return False
    if other is None:
        return True
    # A copy of A is worth while for many columns alone.
    many = min(sizes) >= MOST_COLUMNS
    step = MOST_COLUMNS if many else fitted(product, itemsize(root), LARGE).columns
    return product.extent(product.k) * step * itemsize(root) > PANEL_BYTES


def _scratch(root: Root, parameters: Parameters) -> int:
    """Panels of both, and a block of sums."""
    deep, rows, columns = (parameters[name] for name in ("KC", "MC", "NC"))
    return (rows * deep + columns * deep + rows * columns) * itemsize(root)


# By measurement: of a run of terms that becomes part of a panel's column, its bounds and its masks.
_TURNED = work(index=1, scalar=8)


def _packed(part: Part, product: Product, panel: int) -> Work:
    """What it takes to copy B once, in panels of so many columns, at which runs of columns end too."""
    columns, terms = part.share(product.columns), part.share(product.k)
    walk = walk_of(product)
    if walk is None:
        each = part.load(product.op.inputs[product.b])
        return (each + work(scalar=1, index=1)) * (columns * terms)
    found = windows(product)
    if turns(product, walk):
        return work(pack=0.5) * (columns * terms) + _TURNED * (columns * terms / walk.length)
    apart = work(stride=1) if walk.by_k or walk.step not in (0, 1) else Work()
    padded = found is not None and any(w.guarded for w in found[1])
    run = work(row=1) + (work(index=2, scalar=8) if walk.outer or padded else Work())
    length = walk.length if walk.by_k else min(walk.length, panel)
    each = work(scalar=1) if walk.by_k or padded else work(pack=0.5)
    return (each + apart) * (columns * terms) + run * (columns * terms / length)


def _work(most: Tile, kind: str) -> Callable[[Part], Work]:
    """Whole tiles are computed, those of the last rows by powers of two, of which a small one waits for its
    own sums; A is packed for each block of columns, B for each of rows."""

    def counted(part: Part) -> Work:
        product = _product(part.root)
        nbytes = itemsize(part.root)
        tile, words = fitted(product, nbytes, most), nbytes // 4
        rows, columns, terms = (part.share(d) for d in (product.m, product.columns, product.k))
        times = part.share((*product.batch, *product.lead))
        computed, high = tile.computed(rows)
        across = math.ceil(columns / tile.columns)
        blocks = math.ceil(terms / _TERMS)
        tiles = work(
            **{kind: computed * across * tile.columns * words * terms},
            tile=high * across * blocks,
        )
        packed = _packed(part, turned(product), tile.rows) * math.ceil(columns / _COLUMNS)
        packed = packed + _packed(part, product, tile.columns) * math.ceil(rows / _ROWS)
        stored = part.store + (work(stride=1) if product.transposed else work(scalar=1))
        outputs = stored * (rows * columns) + work(row=rows)
        return (tiles + packed + outputs) * times

    return counted


RKERNELS = [
    RKernel(
        "panel_product",
        variant,
        "cpu",
        __name__,
        "panel_product",
        legal=_legal,
        work=_work(tile, kind),
        reassociates=True,
        halves=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=_parameters(tile),
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
