"""product: contractions and convolutions as blocked matrix products.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)]. A block of B's columns is packed into scratch, row
after row of k, where windows and padding are resolved once; then tiles of ROWS x 16 sums run over all
of k in registers, A being read in place. After K. Goto and R. van de Geijn, Anatomy of
High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008, without its blocking of k.
"""

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, Float64Type

from irkit.dialects.products import Product, as_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.binding.packing import column_step
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

LANES = 16
PANEL_BYTES = 1 << 20
MOST_COLUMNS = 64
"""Columns packed at once."""
_FEWEST_LANES = 4


@dataclass(frozen=True)
class Tile:
    """Sums that stay in registers: `rows` times `across` vectors of `lanes` columns."""

    rows: int
    across: int
    lanes: int = LANES

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.across * self.lanes

    def computed(self, rows: float) -> tuple[float, float]:
        """How many rows are computed for so many, and in how many tiles: whole ones, and the last rows by
        powers of two, of which a small one waits for its own sums."""
        whole, left = divmod(round(rows), self.rows)
        powers = [1 << bit for bit in range(self.rows.bit_length()) if left >> bit & 1]
        least = sum(max(p, self.rows // 2) for p in powers)
        return whole * self.rows + least, whole + len(powers)


# Sixteen registers of 32 bytes hold the first, 32 of 64 bytes the second.
SMALL, LARGE = Tile(4, 1), Tile(8, 2)


def product_blocked(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    panel = POINTER(scratch)
    sums = K * NC
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for c in range(c0, c1, NC):
                count = min(NC, c1 - c)
                PACK(OPERANDS, b, lead, c, count, panel, NC)
                for m in range(m0, m1, TILE):
                    n = min(TILE, m1 - m)
                    first = (b * M + m) * K
                    for q in range(0, count, LANES * ACROSS):
                        multiply_tile(
                            TILE, ACROSS, LANES, n, A, first, K, panel, q, panel, sums + q, NC
                        )
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(n):
                                at = sums + i * NC + j
                                total = panel[at] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, total)
                    else:
                        for i in range(n):
                            at = sums + i * NC - c
                            STORE_COLUMNS(OPERANDS, b, m + i, lead, c, c + count, panel, at)


def itemsize(root: Root) -> int:
    """Bytes of a sum."""
    return 8 if isinstance(tensor_type(root.chain[0].results[0]).element_type, Float64Type) else 4


def fitted_tile(root: Root, most: Tile) -> Tile:
    """The tile of at most the bytes of `most`, of float32, and of few columns no wider than they are."""
    product = as_product(root)
    assert product is not None
    return fitted(product, itemsize(root), most)


def fitted(product: Product, nbytes: int, most: Tile) -> Tile:
    """`fitted_tile` of a product whose sums take `nbytes`."""
    columns, lanes = product.extent(product.columns), most.lanes * 4 // nbytes
    if columns == DYNAMIC:
        return Tile(most.rows, most.across, lanes)
    while lanes > _FEWEST_LANES and columns <= lanes // 2:
        lanes //= 2
    return Tile(most.rows, min(most.across, -(-columns // lanes)), lanes)


def _parameters(most: Tile) -> Callable[[Root], Parameters]:
    """NC: columns packed at once, as many as keep the panel within the second-level cache, up to
    MOST_COLUMNS."""

    def parameters(root: Root) -> Parameters:
        product, tile = as_product(root), fitted_tile(root, most)
        assert product is not None
        step = tile.columns
        fit = PANEL_BYTES // (product.extent(product.k) * itemsize(root))
        columns = product.extent(product.columns)
        wanted = MOST_COLUMNS if columns == DYNAMIC else -(-columns // step) * step
        packed = max(step, min(MOST_COLUMNS, fit // step * step, wanted))
        return {"ACROSS": tile.across, "LANES": tile.lanes, "NC": packed, "TILE": tile.rows}

    return parameters


def _choices(most: Tile) -> Callable[[Root], Mapping[str, Container[int]]]:
    """Whole tiles, so that none writes past the panel."""

    def choices(root: Root) -> Mapping[str, Container[int]]:
        step = fitted_tile(root, most).columns
        return {"NC": range(step, MOST_COLUMNS + 1, step)}

    return choices


def _of_floats(root: Root) -> Product | None:
    product = as_product(root)
    if product is None:
        return None
    element = tensor_type(product.op.results[0]).element_type
    return product if isinstance(element, Float32Type | Float64Type) else None


def _several_rows(root: Root) -> bool:
    """Two rows at least, and more columns than a matrix times a vector has."""
    product = _of_floats(root)
    if product is None:
        return False
    rows, columns = product.extent(product.m), product.extent(product.columns)
    enough = rows == DYNAMIC or rows >= 2
    return enough and (columns == DYNAMIC or columns >= 2)


def _scratch(root: Root, parameters: Parameters) -> int:
    """The panel, and a tile of sums below it."""
    product = as_product(root)
    assert product is not None
    return (product.extent(product.k) + parameters["TILE"]) * parameters["NC"] * itemsize(root)


# By measurement: a run of columns that does not go on into the next finds its row and its bounds; one whose
# elements are not side by side takes gathers and their masks besides.
_BROKEN = work(index=2, scalar=12)
_GATHERED = work(index=30)


# Each vector of B is multiplied with numbers that are read one by one: as long as a vector of so many takes.
_READ_FIRST = 10


def _run(product: Product) -> Work:
    """What each run of columns takes to be packed, beside its elements."""
    found = windows(product)
    if found is None or column_step(product, *found) is not None:
        return work(row=1)
    source, views = found
    apart = any(view.factors.get(product.columns[-1], 0) > 1 for view in views)
    return work(row=1) + _BROKEN + (_GATHERED if apart else Work())


def _work(most: Tile, kind: str) -> Callable[[Part], Work]:
    """Whole tiles are computed, those of the last rows by powers of two, of which a small one waits for its
    own sums; each column is packed once for all rows, run by run where windows are padded."""

    def counted(part: Part) -> Work:
        product, tile = as_product(part.root), fitted_tile(part.root, most)
        assert product is not None
        words = max(tile.columns * itemsize(part.root) // 4, _READ_FIRST)
        rows, columns, terms = (part.share(d) for d in (product.m, product.columns, product.k))
        times = part.share((*product.batch, *product.lead))
        computed, high = tile.computed(rows)
        across = math.ceil(columns / tile.columns)
        tiles = work(**{kind: computed * across * words * terms}, tile=high * across)
        b = product.op.inputs[product.b]
        each = part.fused(b) if windows(product) is None else work(pack=1)
        runs = _run(product) * (terms * math.ceil(columns / part.sizes[product.columns[-1]]))
        outputs = (part.store + work(scalar=1)) * (rows * columns) + work(row=rows)
        again = _read_again(product, itemsize(part.root), tile, columns) * (rows * terms)
        return (tiles + each * (terms * columns) + runs + outputs + again) * times

    return counted


def _read_again(product: Product, nbytes: int, tile: Tile, columns: float) -> Work:
    """What an element of A takes to be read for each panel, where a panel of many terms is of few columns and
    fills the second-level cache. By measurement half of it is hidden behind the sums."""
    row = product.extent(product.k) * nbytes
    if row * MOST_COLUMNS <= PANEL_BYTES:
        return Work()
    packed = max(tile.columns, PANEL_BYTES // row // tile.columns * tile.columns)
    return work(op=nbytes / 4 / 2) * math.ceil(columns / packed)


RKERNELS = [
    RKernel(
        "product",
        variant,
        "cpu",
        __name__,
        "product_blocked",
        legal=_several_rows,
        work=_work(tile, kind),
        reassociates=True,
        halves=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=_parameters(tile),
        choices=_choices(tile),
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
