"""Matrices laid out for tensor cores that read whole rows of 128 or 64 bytes: what `te.pack` makes.

A matrix of rows and terms becomes blocks×parts×groups×8×width: block t has terms t * width on, of every row;
where a term is split, part p is what the parts before have left of it, rounded; a group is 8 rows. So the
rows that a tile takes, from any multiple of 8 on, lie in one piece for each block and part. Within a row the
pieces of 16 bytes stand in the order that the hardware's swizzle gives them, piece c at c ^ (row of the group)
where a row has 8, at c ^ (row / 2) where it has 4: read down a column, they fall into different banks. Terms
and rows that fill up a block or a group are zero. Swizzle: PTX ISA, "Asynchronous Warpgroup Level Matrix
Multiply-Accumulate", shared memory layouts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import Float16Type, bf16, f16, f32
from xdsl.ir import Attribute

from irkit.bfloat16 import dtype_of
from irkit.dialects.precision import Precision, rounded_to_bits
from irkit.weights import Array

ROWS = 8
"""Rows of a group."""


@dataclass(frozen=True)
class Format:
    """How a term is kept: in `parts` values of `element`, `width` terms side by side in a row."""

    parts: int
    element: Attribute
    width: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a block."""
        return self.width * self.item_bytes

    @property
    def item_bytes(self) -> int:
        """Bytes of a value."""
        return 4 if self.element == f32 else 2

    @property
    def pieces(self) -> int:
        """Pieces of 16 bytes in a row."""
        return self.row_bytes // 16

    def shape(self, rows: int, terms: int) -> tuple[int, ...]:
        """Of what a matrix of rows×terms becomes."""
        groups = math.ceil(rows / ROWS)
        return (math.ceil(terms / self.width), self.parts, groups, ROWS, self.width)

    def order(self) -> Array:
        """8×width: which term of its block each value of a row is, by the row of the group."""
        row, place = np.arange(ROWS)[:, None], np.arange(self.width)[None, :]
        of_piece = self.width // self.pieces
        turned = row if self.pieces == 8 else row // 2
        return (place // of_piece ^ turned % self.pieces) * of_piece + place % of_piece


FORMATS = {
    Precision.FLOAT32: Format(3, bf16, 32),
    Precision.TF32: Format(1, f32, 32),
    Precision.BF16: Format(1, bf16, 64),
    Precision.F16: Format(1, f16, 64),
}
"""By the precision of products: a float32 is the sum of three bfloat16s, or is rounded."""


def packed(x: Array, precision: Precision, depth: int, by_k: bool) -> Array:
    """float32 or 16-bit rows×depth (or depth×rows where not `by_k`), as `Format.shape` has it."""
    form = FORMATS[precision]
    matrix = x.reshape(-1, depth) if by_k else x.reshape(depth, -1).T
    rows, terms = matrix.shape
    blocks, _, groups, _, width = shape = form.shape(rows, terms)
    whole = np.zeros((groups * ROWS, blocks * width), np.float32)
    whole[:rows, :terms] = matrix
    tiles = whole.reshape(groups, ROWS, blocks, width).transpose(2, 0, 1, 3)
    turned = np.take_along_axis(tiles, form.order()[None, None], axis=3)
    return np.stack(_parts(turned, precision), axis=1).reshape(shape)


def _parts(values: Array, precision: Precision) -> list[Array]:
    if precision is Precision.TF32:
        return [rounded_to_bits(values, 10)]
    form, found = FORMATS[precision], list[Array]()
    kind = dtype_of("float16" if isinstance(form.element, Float16Type) else "bfloat16")
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(form.parts):
            found.append(values.astype(kind))
            values = values - found[-1].astype(np.float32)
    return found
