"""integer_product: contractions and convolutions of 16-bit integers in sums of 32 bits, which wrap.

As `product.blocked` (its docstring says how), but that two terms at once are multiplied and added up
(`vpdpwssd` or `pmaddwd`, as the processor has them), so B's terms are packed in pairs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from irkit.dialects.products import as_product, of_bytes, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

LANES = 16
_PANEL_BYTES = 1 << 19


@dataclass(frozen=True)
class Tile:
    """Sums that stay in registers: `rows` times `across` vectors of LANES columns."""

    rows: int
    across: int

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.across * LANES


SMALL, LARGE = Tile(4, 1), Tile(8, 2)


def integer_product_blocked(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    sums = int32p(scratch)
    panel = int16p(scratch + TILE * NC * 4)
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for c in range(c0, c1, NC):
                count = min(NC, c1 - c)
                PACK(OPERANDS, b, lead, c, count, panel, NC)
                for m in range(m0, m1, TILE):
                    n = min(TILE, m1 - m)
                    for q in range(0, count, 16 * ACROSS):
                        first = (b * M + m) * K
                        multiply_pairs(TILE, ACROSS, n, A, first, K, panel, q, sums, NC)
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(n):
                                total = sums[i * NC + j] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, int32(total))
                    else:
                        for i in range(n):
                            for j in range(count):
                                total = sums[i * NC + j] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, int32(total))


def legal(root: Root) -> bool:
    """Both factors are of 16 bits."""
    product = as_product(root)
    return product is not None and not of_bytes(product)


def _pairs(root: Root) -> int:
    product = as_product(root)
    assert product is not None
    return -(-product.extent(product.k) // 2)


def _parameters(tile: Tile) -> Callable[[Root], Parameters]:
    """NC: columns packed at once, as many as keep the panel within the second-level cache, up to 64."""

    def parameters(root: Root) -> Parameters:
        product, step = as_product(root), tile.columns
        assert product is not None
        fit = _PANEL_BYTES // (_pairs(root) * 4)
        columns = product.extent(product.columns)
        wanted = 64 if columns == DYNAMIC else -(-columns // step) * step
        packed = max(step, min(64, fit // step * step, wanted))
        return {"ACROSS": tile.across, "NC": packed, "TILE": tile.rows}

    return parameters


def _scratch(root: Root, parameters: Parameters) -> int:
    """A tile of sums, and the panel behind it."""
    return (_pairs(root) + parameters["TILE"]) * parameters["NC"] * 4


def _work(tile: Tile, kind: str) -> Callable[[Part], Work]:
    """As of `product`; a multiplication of a pair takes what one of a float takes."""

    def counted(part: Part) -> Work:
        product = as_product(part.root)
        assert product is not None
        rows, columns, terms = (part.share(d) for d in (product.m, product.columns, product.k))
        times = part.share((*product.batch, *product.lead))
        across = math.ceil(columns / tile.columns)
        down = math.ceil(rows / tile.rows)
        computed = down * tile.rows * across * tile.columns * math.ceil(terms / 2)
        tiles = work(**{kind: computed}, tile=down * across)
        b = product.op.inputs[product.b]
        each = part.fused(b) if windows(product) is None else work(pack=1)
        outputs = (part.store + work(scalar=1)) * (rows * columns) + work(row=rows + terms)
        return (tiles + each * (terms * columns) + outputs) * times

    return counted


RKERNELS = [
    RKernel(
        "integer_product",
        variant,
        "cpu",
        __name__,
        "integer_product_blocked",
        legal=legal,
        work=_work(tile, kind),
        scratch_bytes=_scratch,
        parameters=_parameters(tile),
        # Whole tiles, so that none writes past the panel.
        choices={"NC": range(tile.columns, 65, tile.columns)},
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
