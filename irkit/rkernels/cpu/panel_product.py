"""panel_product: contractions as blocked matrix products of which both operands are packed.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)]. NC columns and KC terms of B, and MC rows of A at a
time, are packed as panels of a tile's columns and rows, and block after block of k is added to the sums of
HIGH rows. The rows of A stay in the second-level cache meanwhile, and a panel of B in the first-level cache.
So it does not matter how operands lie, nor how many terms there are. After K. Goto and R. van de Geijn,
Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008.
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

_TERMS, _HIGH, _COLUMNS = 256, 1024, 1024
"""What a block has at most: large, since A is copied for each block of columns and B for each of rows. Sums
stay in the third-level cache, and are fetched while a tile adds to them."""
_NEAREST_BYTES, _NEAR_BYTES = 36 << 10, 1 << 18
"""Of a panel of B, which stays in the first-level cache while rows of A are multiplied with it, and of these
rows, which stay in the second-level cache while one panel of B comes after another."""
_WIDE = Tile(LARGE.rows, 3)
"""Of A, whose terms lie side by side, three vectors of sums a row are read no more often than two."""
_AGAINST_WIDEST = 1.1
"""What a sum takes in a tile of a vector fewer, by measurement."""


def panel_product(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    panel = POINTER(scratch)
    right = MC * KC
    sums = right + NC * KC
    # Rows of sums do not all begin at one place of the nearest cache.
    width = NC + LANES
    blocks = max((m1 - m0 + HIGH - 1) // HIGH, 1)
    most = ((m1 - m0 + blocks - 1) // blocks + TILE - 1) // TILE * TILE
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for m in range(m0, m1, most):
                height = min(most, m1 - m)
                for c in range(c0, c1, NC):
                    count = min(NC, c1 - c)
                    for k in range(0, K, KC):
                        depth = min(KC, K - k)
                        for t in range(0, depth, DEEP_B):
                            deep = min(DEEP_B, depth - t)
                            for j in range(0, count, LANES * ACROSS):
                                n = min(LANES * ACROSS, count - j)
                                at = right + j * KC + t * LANES * ACROSS
                                PACK_B(OPERANDS, b, lead, c + j, n, k + t, deep, panel, at)
                                # Numbers of other rKernels, where they are tiny, would take long; the first
                                # terms are as many as any that follow.
                                if k == 0 and n < LANES * ACROSS:
                                    for row in range(deep):
                                        for i in range(n, LANES * ACROSS):
                                            panel[at + row * LANES * ACROSS + i] = 0
                        for near in range(0, height, MC):
                            high = min(MC, height - near)
                            for t in range(0, depth, DEEP_A):
                                deep = min(DEEP_A, depth - t)
                                for i in range(0, high, TILE):
                                    n = min(TILE, high - i)
                                    at = i * KC + t * TILE
                                    PACK_A(
                                        OPERANDS, b, 0, m + near + i, n, k + t, deep, panel, at
                                    )  # fmt: skip
                            for j in range(0, count, LANES * ACROSS):
                                for i in range(0, high, TILE):
                                    n = min(TILE, high - i)
                                    multiply_panels(
                                        TILE, ACROSS, LANES, n, depth, panel, i * KC, right + j * KC,
                                        sums + (near + i) * width + j, width, int64(k == 0),
                                    )  # fmt: skip
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(height):
                                at = sums + i * width + j
                                total = panel[at] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, total)
                    else:
                        for i in range(height):
                            at = sums + i * width - c
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


def _fitted(product: Product, nbytes: int, most: Tile) -> Tile:
    """The widest tile of at most `most`, or a narrower one, where whole tiles have fewer sums beyond the last
    column."""
    columns = product.extent(product.columns)
    widest, *others = (
        fitted(product, nbytes, Tile(most.rows, across, most.lanes))
        for across in range(most.across, 0, -1)
    )
    if columns == DYNAMIC:
        return widest
    computed = {t: -(-columns // t.columns) * t.columns for t in (widest, *others)}
    return min(computed, key=lambda t: computed[t] * _AGAINST_WIDEST ** (widest.across - t.across))


def _parameters(tile: Tile) -> Callable[[Root], Parameters]:
    """KC: terms of a panel of B; MC: rows of A that stay near; HIGH and NC: rows and columns of sums."""

    def parameters(root: Root) -> Parameters:
        product, nbytes = _product(root), itemsize(root)
        fit = _fitted(product, nbytes, tile)
        terms = min(_TERMS, _NEAREST_BYTES // (fit.columns * nbytes))
        deep = _even(product.extent(product.k), terms, 1)
        high = _even(product.extent(product.m), _HIGH, fit.rows)
        return {
            "ACROSS": fit.across,
            "HIGH": high,
            "KC": deep,
            "LANES": fit.lanes,
            "MC": _even(high, _NEAR_BYTES // (deep * nbytes), fit.rows),
            "NC": _even(product.extent(product.columns), _COLUMNS, fit.columns),
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
    # A copy of A is worth while for many columns alone, where A is read from beyond the second-level cache
    # for every few of them, or where B must be turned.
    if min(sizes) >= MOST_COLUMNS and (_far(product, itemsize(root)) or _turned(product)):
        return True
    step = (
        MOST_COLUMNS
        if min(sizes) >= MOST_COLUMNS
        else fitted(product, itemsize(root), LARGE).columns
    )
    return product.extent(product.k) * step * itemsize(root) > PANEL_BYTES


def _far(product: Product, nbytes: int) -> bool:
    return product.extent(product.m) * product.extent(product.k) * nbytes > PANEL_BYTES


def _turned(product: Product) -> bool:
    walk = walk_of(product)
    return walk is not None and turns(product, walk)


def _scratch(root: Root, parameters: Parameters) -> int:
    """Panels of both, and a block of sums."""
    deep, rows, columns, high = (parameters[name] for name in ("KC", "MC", "NC", "HIGH"))
    return (rows * deep + columns * deep + high * (columns + parameters["LANES"])) * itemsize(root)


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
        tile, words = _fitted(product, nbytes, most), nbytes // 4
        rows, columns, terms = (part.share(d) for d in (product.m, product.columns, product.k))
        times = part.share((*product.batch, *product.lead))
        computed, high = tile.computed(rows)
        across = math.ceil(columns / tile.columns)
        blocks = math.ceil(terms / _TERMS)
        eased = _AGAINST_WIDEST ** min(LARGE.across - tile.across, 0)
        tiles = work(
            **{kind: computed * across * tile.columns * words * terms * eased},
            tile=high * across * blocks,
        )
        packed = _packed(part, turned(product), tile.rows) * math.ceil(columns / _COLUMNS)
        packed = packed + _packed(part, product, tile.columns) * math.ceil(rows / _HIGH)
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
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", _WIDE, "wide"))
]
