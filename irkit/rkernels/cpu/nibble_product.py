"""nibble_product: rows times a matrix of 4-bit integers, which become floats in vector registers.

A panel of columns is a line of a cache for each pair of terms; its integers are spread to 32 bits and
converted as they are read, for TILE rows at once, and what a block's terms add up to is scaled once
(`irkit.runtime.intrinsics.cpu_nibbles`). So many blocks that a panel's part stays in the first-level cache
serve all rows before the next ones are read.
"""

import math
from collections.abc import Callable

from irkit.dialects import te
from irkit.dialects.nibbles import WIDTH
from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_DEPTH = 512
"""Terms of a panel that all rows go through: 16 KiB, and 2 KiB of each row of the other factor."""
_SPREADING = 2.0
"""What it takes to make a float of an integer, in multiply-adds, by measurement."""


def nibble_product_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    sums = POINTER(scratch)
    for panel in range(j0 // WIDTH, (j1 + WIDTH - 1) // WIDTH):
        for part in range(0, BLOCKS, TOGETHER):
            for r in range(r0, r1, TILE):
                for block in range(part, min(BLOCKS, part + TOGETHER)):
                    k = block * BLOCK
                    of_block = (panel * BLOCKS + block) * WIDTH
                    add_nibbles(
                        TILE, WIDTH, CENTRED, min(TILE, r1 - r), min(BLOCK, K - k), X, r * K + k, K,
                        PACKED, (panel * K + k) // 2 * WIDTH, SCALES, ZEROS, of_block, sums,
                        (r - r0) * WIDTH, int64(block == 0),
                    )  # fmt: skip
        first = max(j0, panel * WIDTH)
        last = min(j1, (panel + 1) * WIDTH)
        for r in range(r0, r1):
            for j in range(first, last):
                STORE(OPERANDS, r, j, sums[(r - r0) * WIDTH + j - panel * WIDTH])


def _op(root: Root) -> te.NibbleMatmulOp:
    assert isinstance(root.op, te.NibbleMatmulOp)
    return root.op


def _parameters(tile: int) -> Callable[[Root], Parameters]:
    """TOGETHER: blocks that all rows go through."""

    def parameters(root: Root) -> Parameters:
        together = max(1, _DEPTH // _op(root).terms)
        return {"TILE": tile, "TOGETHER": together}

    return parameters


def _scratch(root: Root, parameters: Parameters) -> int:
    """The sums of a panel."""
    return root.parallel[0] * WIDTH * 4


def _work(tile: int, kind: str) -> Callable[[Part], Work]:
    """Integers are spread once for each tile of rows; sums are read, scaled and written once for a block."""

    def counted(part: Part) -> Work:
        op = _op(part.root)
        rows, columns = part.rows, math.ceil(part.width / WIDTH) * WIDTH
        tiles = math.ceil(rows / min(tile, rows))
        terms = columns * op.depth
        sums = columns * rows * op.blocks
        outputs = (part.store + work(scalar=1)) * part.elements + work(row=rows)
        return outputs + work(**{kind: terms * (rows + _SPREADING * tiles)}, op=sums)

    return counted


RKERNELS = [
    RKernel(
        "nibble_product",
        variant,
        "cpu",
        __name__,
        "nibble_product_rows",
        work=_work(tile, kind),
        parameters=_parameters(tile),
        scratch_bytes=_scratch,
        reassociates=True,
        contracts=True,
    )
    for variant, tile, kind in (("rows", 2, "fma"), ("wide_rows", 4, "wide"))
]
