"""A contraction seen as a product of matrices of which both are copied, however they lie.

As `irkit.dialects.products`, but A need not lie in memory, nor in the order of the loops: a transposed matrix,
a gradient of a convolution's filters, what is computed on the way.
"""

from __future__ import annotations

import math
from dataclasses import replace

from irkit.dialects.linalg_generic import is_contraction, maps
from irkit.dialects.products import Product, used_loops
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC

_ROWS, _COLUMNS = 8, 32
"""Of a tile of sums; few columns are a narrower one, of a power of two."""


def as_panel_product(root: Root) -> Product | None:
    """`root` as a product of two operands, None if it is none.

    Of two ways, the one of the fewest sums in whole tiles; of as many, that by which the last loop of the result
    is one of B's columns, so that they are stored side by side.
    """
    if "panel product" not in root.counted:
        root.counted["panel product"] = _find(root)
    return root.counted["panel product"]


def turned(product: Product) -> Product:
    """The same with A for B: its rows are columns, of no lead."""
    return replace(product, a=product.b, b=product.a, m=product.columns, lead=(), columns=product.m)


def _find(root: Root) -> Product | None:
    if len(root.chain) != 1 or not is_contraction(root.chain[0]):
        return None
    found = [p for a in (0, 1) if (p := _with_a(root, a)) is not None]
    return min(found, key=lambda p: (_computed(p), p.transposed), default=None)


def _computed(product: Product) -> int:
    """Sums of whole tiles; a batch is taken to be no part of one."""
    rows, columns = (abs(product.extent(dims)) for dims in (product.m, product.columns))
    step = min(_COLUMNS, max(4, 1 << (columns - 1).bit_length()))
    lead = math.prod(size for size in product.extents(product.lead) if size != DYNAMIC)
    return lead * -(-rows // _ROWS) * _ROWS * -(-columns // step) * step


def _with_a(root: Root, a: int) -> Product | None:
    op, sizes = root.chain[0], (*root.parallel, *root.reduction)
    k = tuple(range(len(root.parallel), len(sizes)))
    of_a, of_b = used_loops(maps(op)[a]), used_loops(maps(op)[1 - a])
    m, own = tuple(sorted(of_a - of_b)), sorted(of_b - of_a)
    all_k = set(k) <= of_a and set(k) <= of_b
    if not (all_k and m and own and k) or of_a | of_b != set(range(len(sizes))):
        return None
    if used_loops(maps(op)[2]) & set(k):
        return None
    first = len(own) - 1
    while first and own[first - 1] == own[first] - 1:
        first -= 1
    batch = tuple(sorted((of_a & of_b) - set(k)))
    return Product(op, a, 1 - a, batch, m, tuple(own[:first]), tuple(own[first:]), k, sizes)
