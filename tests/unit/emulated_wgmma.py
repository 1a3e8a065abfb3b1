"""What warp groups do, for the emulator: tiles in shared memory, packed and swizzled as on the hardware."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from irkit.runtime.intrinsics import cuda_mma
from irkit.runtime.intrinsics.cuda_wgmma import PRODUCTS
from irkit.runtime.intrinsics.cuda_wgmma_terms import terms_of_chunk
from irkit.scaled_rows import LOW

_SIXTEEN = {
    cuda_mma.SPLIT: ml_dtypes.bfloat16,
    cuda_mma.BF16: ml_dtypes.bfloat16,
    cuda_mma.F16: np.float16,
    cuda_mma.SCALED: np.float16,
}
_KEPT_BITS = 24 + 2
"""Bits to which a tensor core cuts what it adds, from the largest on: a float32's, and two."""


def aligned_place(p: Any, position: int) -> int:
    return -(-position // 256) * 256


def read_terms(p: Any, place: int, step: int, count: int, apart: int, kind: int) -> tuple[Any, ...]:
    terms = terms_of_chunk(kind)
    return tuple(p[place + n * apart + i * step] for n in range(count) for i in range(terms))


def swizzled(word: Any, row_words: int) -> Any:
    """The place of a word of a tile that starts at a multiple of 1024 bytes."""
    return word ^ (((word >> 5) & (row_words // 4 - 1)) << 2)


def _rounded_to_tf32(values: Any) -> Any:
    words = values.view(np.uint32)
    odd = (words >> 13) & np.uint32(1)
    return ((words + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)).view(np.float32)


def parts(values: Any, kind: int) -> list[Any]:
    """The words of each part of a chunk's terms."""
    if kind == cuda_mma.TF32:
        return [_rounded_to_tf32(values).view(np.uint32)]
    found: list[Any] = []
    for _ in range(3 if kind == cuda_mma.SPLIT else 1):
        part = values.astype(_SIXTEEN[kind])
        found.append(part.view(np.uint32))
        values = values - part.astype(np.float32)
    return found


def pack_terms(
    least: Any, most: Any, terms: Any, p: Any, tile: int, row: int, chunk: int, *rest: int
) -> tuple[Any, Any]:
    down, across, row_words, part_words, kind = rest
    count = terms_of_chunk(kind)
    for n, start in enumerate(range(0, len(terms), count)):
        own = np.array(terms[start : start + count], np.float32)
        if kind == cuda_mma.SPLIT:
            twice = own.view(np.uint32) * np.uint32(2)
            least = np.minimum((twice - np.uint32(1)).min(), least)
            most = np.maximum(twice.max(), most)
        word = (row + n * down) * row_words + 4 * (chunk + n * across)
        at = tile + swizzled(word, row_words)
        for part, words in enumerate(parts(own, kind)):
            p.view(np.uint32)[at + part * part_words :][:4] = words
    return least, most


def chunk_of(tile: int, row: int, chunk: int) -> int:
    """Where `copy_chunk` writes, in halves of a word."""
    return 2 * (tile + swizzled(32 * row + 4 * chunk, 32))


def round_chunks(p: Any, tile: int, row: int, chunk: int, further: int, count: int) -> None:
    assert further % 8 == 0
    for n in range(count):
        place = chunk_of(tile, row + n * further, chunk) // 2
        p[place : place + 4] = _rounded_to_tf32(p[place : place + 4].copy())


def _values(p: Any, words: Any, second: Any, kind: int) -> Any:
    """The terms at some words; of 16 bits, the second of a word where `second` is 1."""
    found = p.view(np.uint32)[words]
    if kind == cuda_mma.TF32:
        return found.view(np.float32)
    half = (found >> (16 * second).astype(np.uint32)).astype(np.uint16)
    return half.view(_SIXTEEN[kind]).astype(np.float32)


class Tile:
    """Reads the rows of one operand back."""

    def __init__(self, p: Any, at: int, row_words: int, plane: int, kind: int) -> None:
        self.p, self.at, self.row_words, self.plane, self.kind = p, at, row_words, plane, kind
        self.of_a_word = 1 if kind == cuda_mma.TF32 else 2

    def _read(self, plane: Any, row: Any, along: Any) -> Any:
        word = self.at + plane * self.plane + row * self.row_words + along // self.of_a_word
        start = self.at - self.at % 256
        place = start + swizzled(word - start, self.row_words)
        return _values(self.p, place, along % self.of_a_word, self.kind)

    def terms_first(self, rows: Any, terms: int, part: int) -> Any:
        """[rows, terms] of a part."""
        row, k = rows[:, None], np.arange(terms)[None, :]
        of_a_row = self.row_words * self.of_a_word
        return self._read(k // of_a_row + part, row, k % of_a_row)

    def columns_first(self, columns: Any, terms: int) -> Any:
        """[columns, terms] where a row has 64 columns."""
        column, k = columns[:, None], np.arange(terms)[None, :]
        return self._read(column // 64, k, column % 64)


def _cut(values: Any, largest: Any, bits: int) -> Any:
    """float64 without the bits below the first `bits` of the largest of them."""
    unit = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - bits, -1000))
    return np.trunc(values / unit) * unit


def multiplied(sums: Any, left: Any, right: Any) -> Any:
    """sums[i] + left[i] right[i] as one instruction adds them, towards zero.

    After M. Fasi, N. J. Higham, M. Mikaitis and S. Pranesh, "Numerical behavior of NVIDIA tensor cores",
    2021: products are exact, all are cut where the largest's bits end, and so is their sum.
    """
    added = np.empty((len(left), left.shape[1] + 1))
    np.multiply(left, right, out=added[:, :-1], dtype=np.float64)
    added[:, -1] = sums
    total = _cut(added, np.abs(added).max(axis=1, keepdims=True), _KEPT_BITS).sum(axis=1)
    whole = np.isfinite(added).all(axis=1)
    if whole.all():
        return _cut(total, total, 24).astype(np.float32)
    return np.where(whole, _cut(total, total, 24), added.sum(axis=1)).astype(np.float32)


@functools.cache
def _of_thread(thread: int, columns: int) -> tuple[Any, ...]:
    """Rows of a thread of a group, which of them each of its sums is in, and the same of columns."""
    lane, tiles = thread % 32, range(columns // 8)
    y = [16 * (thread // 32) + lane // 4 + 8 * h for h in (0, 1)]
    x = [8 * j + 2 * (lane % 4) + e for j in tiles for e in (0, 1)]
    at_y, at_x = [0, 0, 1, 1] * len(tiles), [2 * j + e for j in tiles for e in (0, 1, 0, 1)]
    return tuple(map(np.array, (y, at_y, x, at_x)))


def group_products(thread: int, sums: Any, p: Any, a: int, b: int, *rest: int) -> tuple[Any, ...]:
    columns, terms, row_words, a_plane, b_plane, by_k, kind, fresh, which = rest
    of_a = Tile(p, a, row_words, a_plane, kind)
    of_b = Tile(p, b, row_words, b_plane, kind)
    y, at_y, x, at_x = _of_thread(thread % 128, columns)
    parts = PRODUCTS[which]
    rows = {i: of_a.terms_first(y, terms, i)[at_y] for i, _ in parts}
    beside = {
        j: (of_b.terms_first(x, terms, j) if by_k else of_b.columns_first(x, terms))[at_x]
        for _, j in parts
    }
    step, found = 8 if kind == cuda_mma.TF32 else 16, list[Any]()
    each = terms // max(fresh, 1)
    for first in range(0, terms, each):
        total = np.zeros(len(at_x), np.float32) if fresh else np.array(sums, np.float32)
        for k in range(first, first + each, step):
            for i, j in parts:
                total = multiplied(total, rows[i][:, k : k + step], beside[j][:, k : k + step])
        found += [*total]
    return tuple(found)


def packed_weights(weights: Any, kind: int) -> Any:
    """Each by itself."""
    return np.array(weights, np.float32).astype(_SIXTEEN[kind]).astype(np.float32)


def weighted_products(
    exchanged: Any,
    lane: int,
    sums: Any,
    own: Any,
    p: Any,
    values: int,
    *rest: int,
) -> tuple[Any, ...]:
    """`exchanged(value, source)` gives what a lane of this warp gave."""
    columns, keys, plane, kind = rest
    right = Tile(p, values, 32, plane, kind).columns_first(np.arange(columns), keys)
    # A row's weights are those of four lanes, two neighbours of each eight.
    rows = np.zeros((2, keys), np.float32)
    for t in range(4):
        theirs = np.array(exchanged(own, lane - lane % 4 + t))
        for half in (0, 1):
            for e in (0, 1):
                rows[half, 2 * t + e :: 8] = theirs[2 * half + e :: 4]
    x = np.array([j + 2 * (lane % 4) + e for j in range(0, columns, 8) for e in (0, 1, 0, 1)])
    y = np.array([h for _ in range(0, columns, 8) for h in (0, 0, 1, 1)])
    return tuple(np.array(sums, np.float32) + (rows[y] * right[x]).sum(axis=1, dtype=np.float32))


def group_added(sums: Any, products: Any, fresh: int, left: int) -> tuple[Any, ...]:
    if not fresh:
        return products
    found = np.array(products, np.float32)
    while len(found) > len(sums):
        found = found[: len(found) // 2] + found[len(found) // 2 :]
    return tuple(np.array(sums, np.float32) + found)


def group_added_low(sums: Any, products: Any) -> tuple[Any, ...]:
    return tuple(np.array(sums, np.float32) + np.array(products, np.float32) / np.float32(LOW))
