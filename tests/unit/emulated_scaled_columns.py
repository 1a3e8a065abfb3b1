"""What warp groups do that hold columns in scaled parts, for the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulated_columns import held_terms
from emulated_wgmma import Tile, multiplied

from irkit.runtime.intrinsics import cuda_mma
from irkit.runtime.intrinsics.cuda_wgmma_scaled import FACTS
from irkit.scaled_rows import EXPONENTS, HEADROOM, KEPT, LARGEST, LOW, SLIGHT, TINY, UNDERFLOW

_TERMS = 32
"""Of a row of 128 bytes in memory."""


def facts_of(words: Any) -> Any:
    return tuple(np.array(words[-FACTS:], np.uint32).view(np.float32))


def _column_facts(sizes: Any, largest: int, bound: Any, most: Any) -> tuple[Any, Any, Any, Any]:
    exponent = min(max(127 + LARGEST - (largest >> 23), EXPONENTS[0]), EXPONENTS[1])
    scale, back = np.float32(2.0**exponent), np.float32(2.0**-exponent)
    values = np.array(sizes, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        if ((values * scale < KEPT) & (values != 0)).any():
            bound = np.float32(bound + back * np.float32(len(sizes) * SLIGHT * HEADROOM))
    if exponent > UNDERFLOW and largest:
        bound = np.float32(bound + np.float32(TINY))
    seen = np.array([max(int(np.float32(most).view(np.uint32)), largest)], np.uint32)
    return scale, back, bound, seen.view(np.float32)[0]


def columns_added(sums: Any, products: Any, facts: Any) -> tuple[Any, ...]:
    count = len(sums)
    high, rest = np.array(products, np.float32).reshape(2, count)
    backs = np.array([facts[n // 2 % 2] for n in range(count)], np.float32)
    with np.errstate(all="ignore"):
        both = (high + rest * np.float64(1 / LOW)).astype(np.float32)
        found = np.array(sums, np.float64) + both.astype(np.float64) * backs
        return tuple(found.astype(np.float32))


def _held(told: list[Any]) -> Any:
    """[parts, halves, terms] of what the four lanes of two columns hold."""
    wide = 2 * len(told[0])
    left = np.zeros((2, 2, wide), np.float32)
    for quad, held in enumerate(told):
        steps = np.array(held, np.uint32).reshape(-1, 2, 4).view(np.float16)
        for n, halves in enumerate(steps):
            places = held_terms(quad, cuda_mma.SPLIT)[8 * (n % 2) : 8 * (n % 2) + 8]
            for i, (half, term) in enumerate(places):
                left[:, half, _TERMS * (n // 2) + term] = halves[:, i]
    return left


class _Warp:
    """What the lanes of a warp tell each other."""

    def __init__(self, exchanged: Callable[[Any, int], Any], lane: Callable[[], int]) -> None:
        self.exchanged, self.lane = exchanged, lane

    def of_columns(self, value: Any) -> list[Any]:
        """The value of each of the four lanes that have this one's columns."""
        first = self.lane() - self.lane() % 4
        return [self.exchanged(value, first + t) for t in range(4)]

    def scale_columns(self, facts: Any, words: Any) -> Any:
        bits = [int(w) & 0x7FFFFFFF for w in words]
        sizes = [[s for i, s in enumerate(bits) if i // 2 % 2 == n] for n in (0, 1)]
        told = self.of_columns(tuple(max(s) for s in sizes))
        found = [
            _column_facts(sizes[n], max(t[n] for t in told), facts[2 + n], facts[4 + n])
            for n in (0, 1)
        ]
        values = np.array(words, np.uint32).view(np.float32)
        scales = np.array([found[i // 2 % 2][0] for i in range(len(words))], np.float32)
        cut = list[Any]()
        with np.errstate(all="ignore"):
            scaled = values * scales
            high = scaled.astype(np.float16)
            low = ((scaled - high.astype(np.float32)) * np.float32(LOW)).astype(np.float16)
        for n in range(0, len(words), 8):
            cut += [w for part in (high, low) for w in part[n : n + 8].view(np.uint32)]
        more = np.array([of[i] for i in (1, 2, 3) for of in found], np.float32)
        return (*cut, *more.view(np.uint32))

    def scaled_products(self, words: Any, p: Any, place: int, rows: int) -> tuple[Any, ...]:
        own, left = self.lane(), _held(self.of_columns(words))
        tile, wide = Tile(p, place, 32, 32 * rows, cuda_mma.SCALED), left.shape[-1]
        x = np.array([j + 2 * (own % 4) + e for j in range(0, rows, 8) for e in (0, 1, 0, 1)])
        y = np.array([h for _ in range(0, rows, 8) for h in (0, 0, 1, 1)])
        beside, sums = [tile.terms_first(x, wide, j) for j in (0, 1)], list[Any]()
        for pairs in (((0, 0),), ((1, 0), (0, 1))):
            total = np.zeros(rows // 2, np.float32)
            for k in range(0, wide, 16):
                for i, j in pairs:
                    total = multiplied(total, left[i][y][:, k : k + 16], beside[j][:, k : k + 16])
            sums += list(total)
        return tuple(sums)

    def sure_columns(
        self, sums: Any, facts: Any, p: Any, rows: int, bounds: int, quad: int
    ) -> tuple[Any, ...]:
        told, found = self.of_columns(facts), list[Any]()
        for n, value in enumerate(sums):
            column, at = n // 2 % 2, rows + 8 * (n // 4) + 2 * quad + n % 2
            bound = np.float32(sum(t[2 + column] for t in told))
            most = np.float32(facts[4 + column] * np.float32(2.0 ** -(LARGEST + 1)))
            with np.errstate(all="ignore"):
                least = -np.inf if most == 0 else bound + p[at + bounds] * most
                sure = least <= abs(value) < np.inf
                found.append(value * p[at] if sure else np.float32(np.nan))
        return tuple(found)


def names(exchanged: Callable[[Any, int], Any], lane: Callable[[], int]) -> dict[str, Any]:
    """By their names in templates. `exchanged(value, source)` gives what a lane of this warp gave."""
    warp = _Warp(exchanged, lane)
    return {
        "scale_columns": warp.scale_columns,
        "facts_of": facts_of,
        "scaled_products": warp.scaled_products,
        "columns_added": columns_added,
        "sure_columns": warp.sure_columns,
    }
