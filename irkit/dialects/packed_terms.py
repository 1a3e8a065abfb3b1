"""Matrices laid out for tensor cores that read whole rows of 128 or 64 bytes: what `te.pack` makes.

A matrix of rows and terms becomes blocks×parts×groups×8×width: block t has terms t * width on, of every row;
where a term is split, part p is what the parts before have left of it, rounded; a group is 8 rows. So the
rows that a tile takes, from any multiple of 8 on, lie in one piece for each block and part. Within a row the
pieces of 16 bytes stand in the order that the hardware's swizzle gives them, piece c at c ^ (row of the group)
where a row has 8, at c ^ (row / 2) where it has 4: read down a column, they fall into different banks. Terms
and rows that fill up a block or a group are zero. Swizzle: PTX ISA, "Asynchronous Warpgroup Level Matrix
Multiply-Accumulate", shared memory layouts.

`SCALED` terms are as `irkit/scaled_rows.py` says. One more block, behind the others, has for each row in its
first part, as float32: what its sums are to be multiplied by, and its bound, -inf where all terms are zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import Float16Type, bf16, f16, f32
from xdsl.ir import Attribute

from irkit.bfloat16 import dtype_of
from irkit.dialects.precision import Precision, rounded_to_bits
from irkit.scaled_rows import EXPONENTS, HEADROOM, KEPT, LARGEST, LOW
from irkit.weights import Array

ROWS = 8
"""Rows of a group."""
SCALED = "scaled"
"""float32 in two scaled float16 parts, whose products are three where those of `float32` are six."""
FEWEST_SCALED = 64
"""Terms of a sum below which a product of scaled parts may be off by more than plain sums are."""


@dataclass(frozen=True)
class Format:
    """How a term is kept: in `parts` values of `element`, `width` terms side by side in a row."""

    parts: int
    element: Attribute
    width: int
    headers: int = 0
    """Blocks behind those of terms."""

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
        return (self.blocks(terms) + self.headers, self.parts, groups, ROWS, self.width)

    def blocks(self, terms: int) -> int:
        """Of terms."""
        return math.ceil(terms / self.width)

    def order(self) -> Array:
        """8×width: which term of its block each value of a row is, by the row of the group."""
        row, place = np.arange(ROWS)[:, None], np.arange(self.width)[None, :]
        of_piece = self.width // self.pieces
        turned = row if self.pieces == 8 else row // 2
        return (place // of_piece ^ turned % self.pieces) * of_piece + place % of_piece


FORMATS = {
    Precision.FLOAT32.value: Format(3, bf16, 32),
    Precision.TF32.value: Format(1, f32, 32),
    Precision.BF16.value: Format(1, bf16, 64),
    Precision.F16.value: Format(1, f16, 64),
    SCALED: Format(2, f16, 64, headers=1),
}
"""By the precision of products: a float32 is the sum of three bfloat16s, or is rounded; or by `SCALED`."""


def packed(x: Array, name: str, depth: int, by_k: bool) -> Array:
    """float32 or 16-bit rows×depth (or depth×rows where not `by_k`), as `Format.shape` of FORMATS[name] has
    it."""
    form = FORMATS[name]
    matrix = x.reshape(-1, depth) if by_k else x.reshape(depth, -1).T
    rows, terms = matrix.shape
    shape = form.shape(rows, terms)
    whole = np.zeros((shape[2] * ROWS, form.blocks(terms) * form.width), np.float32)
    whole[:rows, :terms] = matrix
    if name != SCALED:
        return _in_order(_parts(whole, name), form).reshape(shape)
    exponents = _exponents(whole)
    terms_of_rows, lost = _scaled(whole, exponents)
    bound = lost * HEADROOM
    # Sums of nothing but zeros are right as they are.
    bound = np.where(whole.any(axis=1), bound, -np.inf)
    found = np.zeros(shape, np.float16)
    found[:-1] = terms_of_rows
    header = np.stack([np.ldexp(1.0, -exponents), bound], 1).astype(np.float32)
    found[-1, 0].reshape(-1, form.width).view(np.float32)[:, :2] = header
    return found


def _in_order(parts: list[Array], form: Format) -> Array:
    """Matrices of all parts, whole blocks and groups, as they are laid out."""
    rows, terms = parts[0].shape
    blocks, groups = terms // form.width, rows // ROWS
    shape, rows_of_group = (groups, ROWS, blocks, form.width), np.arange(ROWS)[:, None]
    # Whole pieces of 16 bytes change places.
    pieces = form.order()[:, :: form.width // form.pieces] // (form.width // form.pieces)
    found = np.empty((blocks, len(parts), *shape[:2], form.width), parts[0].dtype)
    for number, part in enumerate(parts):
        tiles = np.ascontiguousarray(part.reshape(shape).transpose(2, 0, 1, 3))
        whole = tiles.view(np.complex128)
        found.view(np.complex128)[:, number] = whole[:, :, rows_of_group, pieces]
    return found


def _parts(values: Array, name: str) -> list[Array]:
    if name == Precision.TF32.value:
        return [rounded_to_bits(values, 10)]
    form, found = FORMATS[name], list[Array]()
    kind = dtype_of("float16" if isinstance(form.element, Float16Type) else "bfloat16")
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(form.parts):
            found.append(values.astype(kind))
            values = values - found[-1].astype(np.float32)
    return found


def _exponents(values: Array) -> Array:
    """Of the powers of two that rows are multiplied by."""
    bits = np.fmax.reduce(np.abs(values), axis=1).view(np.uint32) >> np.uint32(23)
    return np.clip(127 + LARGEST - bits.astype(np.int64), *EXPONENTS)


def _scaled(values: Array, exponents: Array) -> tuple[Array, Array]:
    """Both parts of rows, laid out, and what the small terms of each row have lost, scaled."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        scaled = values * np.ldexp(np.float32(1), exponents)[:, None]
        high = scaled.astype(np.float16)
        rest = (scaled - high.astype(np.float32)) * np.float32(LOW)
        low = rest.astype(np.float16)
        small = (np.abs(scaled) < KEPT) & (values != 0)
        lost = np.zeros(len(values), np.float32)
        for row in np.flatnonzero(small.any(axis=1)):
            rests = np.abs(rest[row] - low[row].astype(np.float32)) / np.float32(LOW)
            lost[row] = rests[small[row]].sum()
    return _in_order([high, low], FORMATS[SCALED]), lost


def headers_of(given: Array) -> tuple[Array, Array]:
    """Of each row of scaled terms, those that fill up the last group among them: what its sums are to be
    multiplied by, and its bound."""
    words = given[-1, 0].reshape(-1, FORMATS[SCALED].width).view(np.float32)
    return words[:, 0], words[:, 1]


def is_scaled(x: Array, given: Array, depth: int, by_k: bool) -> bool:
    """Whether `given` has the terms of `x`, and bounds for what they lose; of rows and terms that are zero
    throughout nothing is said."""
    matrix = x.reshape(-1, depth) if by_k else x.reshape(depth, -1).T
    factor, bound = headers_of(given)
    mantissa, power = np.frexp(factor)
    exponents = 1 - power.astype(np.int64)
    allowed = (exponents >= EXPONENTS[0]) & (exponents <= EXPONENTS[1])
    if not (allowed & (mantissa == 0.5)).all():
        return False
    whole = np.zeros((len(factor), (len(given) - 1) * FORMATS[SCALED].width), np.float32)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    want, lost = _scaled(whole, exponents)
    known = (whole != 0).any(axis=1)[:, None] & (whole != 0).any(axis=0)
    as_terms = _in_order([known.astype(np.float16)], FORMATS[SCALED])
    right = (want == given[:-1]) | np.isnan(want) & np.isnan(given[:-1]) | (as_terms == 0)
    # Sums of what rows lose come in any order.
    bounded = (lost * HEADROOM <= bound * (1 + 1e-5)) | ~whole.any(axis=1)
    return bool(right.all() and bounded.all())
