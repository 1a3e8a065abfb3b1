"""What warp groups do that hold columns in registers, for the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulated_wgmma import Tile, _values, multiplied, parts, swizzled

from irkit.runtime.intrinsics import cuda_mma
from irkit.runtime.intrinsics.cuda_wgmma_columns import PARTS

_TERMS = 32


def held_terms(quad: int, kind: int) -> list[tuple[int, int]]:
    """(half of the columns, term) of each word that a lane holds."""
    if kind == cuda_mma.TF32:
        return [(h, 8 * s + quad + 4 * j) for s in range(4) for j in (0, 1) for h in (0, 1)]
    return [
        (h, 16 * s + 8 * j + 2 * quad + e)
        for s in range(2) for j in (0, 1) for h in (0, 1) for e in (0, 1)
    ]  # fmt: skip


def column_terms(
    p: Any, tile: int, column: int, quad: int, by_k: int, kind: int, terms: int, rows: int
) -> Any:
    assert tile % 256 == 0
    assert not column & 8
    found: list[Any] = []
    for n in range(terms // _TERMS):
        for half, term in held_terms(quad, kind):
            own = column + 8 * half
            if by_k:
                word = 32 * (n * rows + own) + term
            else:
                word = own // 32 * (32 * rows) + 32 * (n * _TERMS + term) + own % 32
            start = tile - tile % 256
            word += tile - start
            found.append(p.view(np.uint32)[start + swizzled(word, 32)])
    return tuple(found)


def _seen(least: Any, most: Any, first: Any) -> tuple[Any, Any]:
    low, top = (np.array([v], np.uint32).view(np.uint16) for v in (least, most))
    size = np.array(first, np.uint32).view(np.uint16).reshape(-1, 2) & np.uint16(0x7FFF)
    low = np.minimum(low, (size - np.uint16(1)).min(axis=0))
    top = np.maximum(top, size.max(axis=0))
    return low.view(np.uint32)[0], top.view(np.uint32)[0]


def cut_columns(least: Any, most: Any, words: Any) -> Any:
    found: list[Any] = []
    for first in range(0, len(words), 8):
        own = parts(np.array(words[first : first + 8], np.uint32).view(np.float32), cuda_mma.SPLIT)
        least, most = _seen(least, most, own[0])
        found += [w for part in own for w in part]
    return (*found, least, most)


def taken_over(words: Any, behind: int) -> Any:
    return words[:-behind]


def _columns(own: list[Any], kind: int) -> Any:
    """[parts, halves, terms] of what the four lanes of two columns hold."""
    count = PARTS if kind == cuda_mma.SPLIT else 1
    found = np.zeros((count, 2, _TERMS), np.float32)
    for quad, words in enumerate(own):
        places = held_terms(quad, kind)
        if kind == cuda_mma.TF32:
            values = np.array(words, np.uint32).view(np.float32)[:, None]
        else:
            packed = np.array(words, np.uint32).reshape(-1, PARTS, 4)
            both = [
                _values(packed[:, :, i].copy(), ..., np.array(e), kind)
                for i in range(4)
                for e in (0, 1)
            ]
            # [steps, parts, eight] as steps come.
            values = np.stack(both, axis=-1).transpose(0, 2, 1).reshape(-1, PARTS)
        for (half, term), value in zip(places, values, strict=True):
            found[:, half, term] = value
    return found


class _Factors:
    """What a lane's warp holds, and rows in shared memory, for the sums of the lane."""

    def __init__(
        self, exchanged: Callable[[Any, int], Any], lane: int, words: Any, kind: int
    ) -> None:
        self.left = _columns([exchanged(words, lane - lane % 4 + t) for t in range(4)], kind)
        self.lane, self.kind = lane, kind

    def products(self, sums: Any, tile: Tile, rows: int, parts: Any) -> tuple[Any, ...]:
        """`sums`, and the products of these parts."""
        lane, step = self.lane, 8 if self.kind == cuda_mma.TF32 else 16
        x = np.array([j + 2 * (lane % 4) + e for j in range(0, rows, 8) for e in (0, 1, 0, 1)])
        y = np.array([h for _ in range(0, rows, 8) for h in (0, 0, 1, 1)])
        total = np.array(sums, np.float32)
        beside = {j: tile.terms_first(x, _TERMS, j) for _, j in parts}
        for k in range(0, _TERMS, step):
            for i, j in parts:
                own = self.left[i][y][:, k : k + step]
                total = multiplied(total, own, beside[j][:, k : k + step])
        return tuple(total)


def names(exchanged: Callable[[Any, int], Any], lane: Callable[[], int]) -> dict[str, Any]:
    """By their names in templates. `exchanged(value, source)` gives what a lane of this warp gave."""

    def column_products(sums: Any, words: Any, p: Any, place: int, rows: int) -> tuple[Any, ...]:
        factors = _Factors(exchanged, lane(), words, cuda_mma.TF32)
        return factors.products(sums, Tile(p, place, 32, 0, cuda_mma.TF32), rows, ((0, 0),))

    def first_products(words: Any, p: Any, place: int, rows: int) -> tuple[Any, ...]:
        factors = _Factors(exchanged, lane(), words, cuda_mma.SPLIT)
        tile = Tile(p, place, 16, 16 * rows, cuda_mma.SPLIT)
        return factors.products((0.0,) * (rows // 2), tile, rows, ((0, 0),))

    def other_products(sums: Any, words: Any, p: Any, place: int, rows: int) -> tuple[Any, ...]:
        factors = _Factors(exchanged, lane(), words, cuda_mma.SPLIT)
        tile = Tile(p, place, 16, 16 * rows, cuda_mma.SPLIT)
        count = rows // 2
        near, far = (
            factors.products(sums[n * count : (n + 1) * count], tile, rows, parts)
            for n, parts in enumerate((((2, 0), (1, 0), (0, 1)), ((2, 1), (1, 1), (0, 2))))
        )
        return (*near, *far)

    return {
        "column_terms": column_terms,
        "cut_columns": cut_columns,
        "taken_over": taken_over,
        "column_products": column_products,
        "first_products": first_products,
        "other_products": other_products,
    }
