"""block_product: rows times a constant factor that is laid out in blocks of 16 columns, term by term.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)], A being the factor, whose rows m are columns of the
result, and B what it is multiplied with, whose columns c are the result's rows: TILE of them at once. A
vector is 16 columns of a block, so no sum's lanes are joined, and nothing of the factor is copied: it is read
once for all rows of a tile, each block from its first term to its last. That of it which the next tile of
rows takes is in a cache then: KC terms at a time where the rows are many. As B. Goto's panels
(`panel_product`), laid out when the program is built; and as many rows are computed as there are, in tiles as
even as can be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from irkit.dialects.products import PACKED_ROWS, Product, as_block_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cpu.product import itemsize
from irkit.rkernels.families.block_product import rows_in_place
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_HELD_BYTES = 1 << 18
"""Of rows that are multiplied with one block after another, and their sums: they stay in the second-level
cache."""
_TERMS = 256
"""Of a block, which stays in the first-level cache while many rows are multiplied with it."""


@dataclass(frozen=True)
class Registers:
    """How many of so many bytes there are: tiles of sums, a row of A's and what is multiplied fit in."""

    count: int
    nbytes: int

    def tile(self, rows: int, size: int) -> tuple[int, int]:
        """Rows at once, of `rows`, and blocks across, of sums of `size` bytes.

        Two vectors of each row are enough for loads to keep up with sums; of few rows, as many as hide the
        time a sum waits for its own.
        """
        vectors = PACKED_ROWS * size // self.nbytes
        room = self.count - 1
        most = max(1, min(8, room // (2 * vectors) - 1))
        if most < 4:
            most = max(1, min(8, room // vectors - 1))
        # In tiles as even as can be.
        high = -(-rows // max(1, -(-rows // most))) or 1
        return high, max(1, min(2 if high > 4 else 4, room // ((high + 1) * vectors)))


# Sixteen registers of 32 bytes, or 32 of 64.
SMALL, LARGE = Registers(16, 32), Registers(32, 64)


def block_product(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    panels = POINTER(scratch)
    sums = 0 if IN_PLACE else HIGH // TILE * WIDE * K
    width = 16 * ACROSS
    below, step = (BELOW, 1) if IN_PLACE else (1, WIDE)
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for c in range(c0, c1, HIGH):
                high = min(HIGH, c1 - c)
                if not IN_PLACE:
                    for i in range(0, high, TILE):
                        n = min(TILE, high - i)
                        PACK_B(OPERANDS, b, lead, c + i, n, 0, K, panels, i // TILE * WIDE * K)
                # A part may begin within a block.
                for m in range(m0 // 16 * 16, m1, width):
                    blocks = min(ACROSS, (m1 - m + 15) // 16)
                    for k in range(0, K, KC):
                        deep, anew = min(KC, K - k), int64(k == 0)
                        factor = (b * DEPTH + m) * K + k * 16
                        for i in range(0, high, TILE):
                            n = min(TILE, high - i)
                            at = (i // TILE * K + k) * WIDE
                            if IN_PLACE:
                                at = FIRST + b * BETWEEN + (c + i) * BELOW + k
                            to = sums + i * width
                            if blocks == ACROSS and n == LAST:
                                multiply_blocks(
                                    LAST, ACROSS, LAST, deep, SOURCE, at, below, step, A, factor,
                                    16 * K, panels, to, width, anew,
                                )  # fmt: skip
                            elif blocks == ACROSS:
                                multiply_blocks(
                                    TILE, ACROSS, TILE, deep, SOURCE, at, below,
                                    step, A, factor, 16 * K, panels, to, width, anew,
                                )  # fmt: skip
                            else:
                                for block in range(blocks):
                                    multiply_blocks(
                                        TILE, 1, n, deep, SOURCE, at, below, step, A,
                                        factor + block * 16 * K, 16 * K, panels, to + block * 16,
                                        width, anew,
                                    )  # fmt: skip
                    first, last = max(m0 - m, 0), min(width, m1 - m)
                    for i in range(high):
                        for j in range(first, last):
                            last_vector_of_fewer_lanes()
                            known = INIT(OPERANDS, b, m + j, lead, c + i)
                            total = panels[sums + i * width + j] + known
                            STORE(OPERANDS, b, m + j, lead, c + i, total)


def _product(root: Root) -> Product:
    product = as_block_product(root)
    assert product is not None
    return product


def _legal(root: Root) -> bool:
    """Of one type of floats, and of known sizes: tiles are of as many rows as there are."""
    product = _product(root)
    if DYNAMIC in root.parallel:
        return False
    sums = tensor_type(product.op.results[0]).element_type
    return all(tensor_type(i).element_type == sums for i in product.op.inputs)


def _parameters(registers: Registers) -> Callable[[Root], Parameters]:
    """TILE: rows at once; LAST: those of the last tile; HIGH: rows that are held; KC:
    terms of a block. WIDE: rows that a panel of copied ones has room for, a power of two."""

    def parameters(root: Root) -> Parameters:
        product, size = _product(root), itemsize(root)
        terms, rows = product.extent(product.k), product.extent(product.columns)
        tile, across = registers.tile(rows, size)
        held = max(1, _HELD_BYTES // ((terms + PACKED_ROWS * across) * size * tile))
        held = max(1, min(held, -(-rows // tile)))
        parts = 1 if held < 3 else -(-terms // _TERMS)
        return {
            "ACROSS": min(across, -(-product.extent(product.m) // PACKED_ROWS)),
            "HIGH": held * tile,
            "KC": -(-terms // parts),
            "LAST": rows % tile or tile,
            "TILE": tile,
            "WIDE": 1 << (tile - 1).bit_length(),
        }

    return parameters


def _scratch(root: Root, parameters: Parameters) -> int:
    """The rows that are held, unless they are read in place, and their sums."""
    product = _product(root)
    tiles = parameters["HIGH"] // parameters["TILE"]
    panels = tiles * parameters["WIDE"] * product.extent(product.k)
    if rows_in_place(product) is not None:
        panels = 0
    sums = parameters["HIGH"] * PACKED_ROWS * parameters["ACROSS"]
    return (panels + sums) * itemsize(root)


def _work(registers: Registers, kind: str) -> Callable[[Part], Work]:
    """Whole blocks are computed, of as many rows as there are; rows are copied once, and all outputs made."""

    def counted(part: Part) -> Work:
        product, size = _product(part.root), itemsize(part.root)
        columns, terms = part.share(product.columns), part.share(product.k)
        units = math.ceil(part.share(product.m) / PACKED_ROWS) * PACKED_ROWS
        known = product.extent(product.columns)
        tile, across = registers.tile(known, size)
        times = part.share((*product.batch, *product.lead))
        tiles = math.ceil(columns / tile) * math.ceil(units / (PACKED_ROWS * across))
        sums = work(**{kind: units * columns * terms * size / 4}, tile=tiles)
        copied = Work()
        if rows_in_place(product) is None:
            each = part.fused(product.op.inputs[product.b]) + work(pack=1)
            copied = each * (columns * terms)
        outputs = (part.store + work(op=size / 4)) * (units * columns) + work(row=columns)
        return (sums + copied + outputs) * times

    return counted


RKERNELS = [
    RKernel(
        "block_product",
        variant,
        "cpu",
        __name__,
        "block_product",
        legal=_legal,
        work=_work(registers, kind),
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=_parameters(registers),
    )
    for variant, registers, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
