"""What rKernels of integers share whose B is packed in words of 32 bits: pairs of terms, or fours."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from irkit.dialects.products import as_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.rkernel import Parameters
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

    @property
    def packed(self) -> range:
        """How many columns may be packed at once: whole tiles, so that none writes past the panel."""
        return range(self.columns, 65, self.columns)


SMALL, LARGE = Tile(4, 1), Tile(8, 2)


def words(root: Root, terms: int) -> int:
    """Words of a column of B, of so many terms each."""
    product = as_product(root)
    assert product is not None
    return -(-product.extent(product.k) // terms)


def parameters_of(tile: Tile, terms: int) -> Callable[[Root], Parameters]:
    """NC: columns packed at once, as many as keep the panel within the second-level cache, up to 64."""

    def parameters(root: Root) -> Parameters:
        product, step = as_product(root), tile.columns
        assert product is not None
        fit = _PANEL_BYTES // (words(root, terms) * 4)
        columns = product.extent(product.columns)
        wanted = 64 if columns == DYNAMIC else -(-columns // step) * step
        packed = max(step, min(64, fit // step * step, wanted))
        return {"ACROSS": tile.across, "NC": packed, "TILE": tile.rows}

    return parameters


def work_of(tile: Tile, terms: int, kind: str) -> Callable[[Part], Work]:
    """As of `product`; a multiplication of a word's terms takes what one of a float takes."""

    def counted(part: Part) -> Work:
        product = as_product(part.root)
        assert product is not None
        rows, columns, summed = (part.share(d) for d in (product.m, product.columns, product.k))
        times = part.share((*product.batch, *product.lead))
        across = math.ceil(columns / tile.columns)
        down = math.ceil(rows / tile.rows)
        computed = down * tile.rows * across * tile.columns * math.ceil(summed / terms)
        tiles = work(**{kind: computed}, tile=down * across)
        b = product.op.inputs[product.b]
        each = part.fused(b) if windows(product) is None else work(pack=1)
        outputs = (part.store + work(scalar=1)) * (rows * columns) + work(row=rows + summed)
        return (tiles + each * (summed * columns) + outputs) * times

    return counted
