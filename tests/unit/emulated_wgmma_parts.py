"""What attention by warp groups does with factors in two float16 parts, for the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulated_mma import held_sums
from emulated_wgmma import multiplied, swizzled

from irkit.runtime.intrinsics.cuda_wgmma_units import UNIT
from irkit.scaled_rows import LOW

_ROW = 32
"""Words of a packed row."""


def _cut(x: Any) -> tuple[Any, Any]:
    """High and low part; what is too large is infinite."""
    x = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        high = x.astype(np.float16)
        return high, ((x - high.astype(np.float32)) * np.float32(LOW)).astype(np.float16)


def cut_chunks(
    p: Any, place: int, scale: Any, tile: int, row: int, chunk: int, *rest: int
) -> tuple[Any, Any]:
    apart, rows, count, part = rest
    assert rows % 8 == 0
    least, most = np.uint32(0xFFFFFFFF), np.uint32(0)
    for n in range(count):
        at = tile + swizzled((row + n * rows) * _ROW + 4 * chunk, _ROW)
        given = p[place + n * apart : place + n * apart + 8]
        assert len(given) == 8
        twice = given.view(np.uint32) * np.uint32(2)
        least, most = np.minimum((twice - np.uint32(1)).min(), least), np.maximum(twice.max(), most)
        own = given * np.float32(scale)
        for m, words in enumerate(_cut(own)):
            p[at + m * part : at + m * part + 4] = words.view(np.float32)
    return least, most


def told_exponent(p: Any, place: int, count: int) -> int:
    return max(int(p.view(np.uint32)[place : place + count].max()) >> 24, 15)


def power_of(exponent: int) -> Any:
    assert 1 <= exponent <= 254
    return np.float32(2.0 ** (int(exponent) - 127))


class Tile:
    """The parts of packed rows, which start at staged[at]."""

    def __init__(self, p: Any, at: int, plane: int, part: int) -> None:
        self.halves, self.at, self.plane, self.part = p.view(np.float16), at, plane, part

    def part_of(self, part: int, row: Any, along: Any) -> Any:
        """Elements `along` of rows."""
        start = self.at - self.at % 256
        word = self.at + along // 64 * self.plane + part * self.part + row * _ROW
        place = start + swizzled(word - start + along % 64 // 2, _ROW)
        return self.halves[2 * place + along % 2].astype(np.float32)


def _products(left: list[Any], right: list[Any]) -> tuple[Any, ...]:
    """Sums of high parts, and of the others, of pairs of [sums, terms]."""
    found: list[Any] = []
    for which in (((0, 0),), ((0, 1), (1, 0))):
        total = np.zeros(len(left[0]), np.float32)
        for k in range(0, left[0].shape[1], 16):
            for x, y in which:
                total = multiplied(total, left[x][:, k : k + 16], right[y][:, k : k + 16])
        found += [*total]
    return tuple(found)


def part_products(thread: int, p: Any, a: int, b: int, *rest: int) -> tuple[Any, ...]:
    columns, terms, a_plane, b_plane, a_part, b_part, _ = rest
    y, x = held_sums(thread % 32, 16, columns)
    k = np.arange(terms)[None, :]
    below, beside = Tile(p, a, a_plane, a_part), Tile(p, b, b_plane, b_part)
    rows = (y + thread // 32 % 4 * 16)[:, None]
    return _products(
        [below.part_of(n, rows, k) for n in (0, 1)],
        [beside.part_of(n, x[:, None], k) for n in (0, 1)],
    )


def joined_products(products: Any, columns: int = 0) -> tuple[Any, ...]:
    high, low = np.array(products, np.float32).reshape(2, -1)
    return tuple(high + low * np.float32(1 / LOW))


def cut_weights(weights: Any) -> tuple[Any, ...]:
    return tuple(w for part in _cut(np.array(weights)) for w in part.view(np.uint32))


def least_scores(least: Any, scores: Any, scale: Any, columns: int) -> tuple[Any, ...]:
    rows = np.array(scores, np.float32).reshape(columns // 8, 2, 2)
    found = np.fmin.reduce(rows, axis=(0, 2)) * np.float32(scale * np.float32(1.4426950408889634))
    return tuple(np.fmin(np.array(least, np.float32), found))


def further_apart(largest: Any, least: Any, bits: int) -> bool:
    return bool((np.array(largest) - np.array(least) > bits).any())


def weighted_added(sums: Any, products: Any, factors: Any, scale: Any) -> tuple[Any, ...]:
    found = np.array(joined_products(products)) * np.float32(scale)
    old = np.array(sums, np.float32).reshape(-1, 2, 2) * np.array(factors)[None, :, None]
    return tuple(old.reshape(-1) + found)


def copy_units(
    copies: Any, p: Any, place: int, source: Any, index: int, limit: int, *rest: int
) -> None:
    pitch, rows, apart, count = rest
    for n, half in ((n, half) for n in range(count) for half in (0, 1)):
        row = n * rows + 4 * half
        to = place + n * apart * UNIT + half * UNIT // 2
        copies.start(p, to, source, index + row * pitch if row < limit else 0, 4, row < limit)
    copies.commit()


def names(
    shuffle: Callable[[Any, Callable[[int], int]], Any],
    thread: Callable[[], int],
    copies: Callable[[], Any],
) -> dict[str, Any]:
    """All by their names in emitted modules; `shuffle` gives what another lane gives."""

    def tell_largest(p: Any, place: int, most: Any) -> None:
        for distance in (16, 8, 4, 2, 1):
            most = max(most, shuffle(most, lambda lane, d=distance: lane ^ d))
        p.view(np.uint32)[place] = most

    def weighted_parts(words: Any, p: Any, values: int, *rest: int) -> tuple[Any, ...]:
        columns, part = rest
        keys, lane = 2 * len(words), thread() % 32
        tables = np.zeros((2, 16, keys), np.float32)
        for d in range(4):
            theirs = shuffle(words, lambda lane, d=d: lane ^ d)
            own = np.array(theirs, np.uint32).view(np.float16).reshape(2, -1)
            y, x = held_sums(lane ^ d, 16, keys)
            tables[:, y, x] = own
        y, x = held_sums(lane, 16, columns)
        tile, k = Tile(p, values, 0, part), np.arange(keys)[None, :]
        return _products(
            [table[y] for table in tables],
            [tile.part_of(n, k, x[:, None]) for n in (0, 1)],
        )

    return {
        "anew": int,
        "copy_units": lambda *given: copy_units(copies(), *given),
        "cut_chunks": cut_chunks,
        "cut_weights": cut_weights,
        "further_apart": further_apart,
        "joined_products": joined_products,
        "least_scores": least_scores,
        "part_products": lambda *given: part_products(thread(), *given),
        "power_of": power_of,
        "still_held": lambda mark, words: mark,
        "tell_largest": tell_largest,
        "told_exponent": told_exponent,
        "weighted_added": weighted_added,
        "weighted_parts": weighted_parts,
    }
