"""What packs scaled rows in two float16 parts, and sums of them, for the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from half_memory import HalfMemory

from irkit.scaled_rows import EXPONENTS, HEADROOM, KEPT, LARGEST, LOW

F32 = np.float32


def sizes_seen(seen: Any, terms: Any) -> tuple[Any, Any]:
    sizes = np.abs(np.array(terms, F32))
    nonzero = np.where(sizes != 0, sizes, F32(np.inf))
    return np.fmin(seen[0], np.fmin.reduce(nonzero)), np.fmax(seen[1], np.fmax.reduce(sizes))


def row_scale(most: Any) -> tuple[Any, Any]:
    bits = int(F32(most).view(np.uint32)) >> 23
    exponent = min(max(127 + LARGEST - bits, EXPONENTS[0]), EXPONENTS[1])
    return F32(2.0**exponent), F32(2.0**-exponent)


def small_terms(least: Any, scale: Any) -> bool:
    return bool(least * scale < KEPT)


def row_bound(lost: Any, most: Any) -> Any:
    return F32(-np.inf) if most == 0 else F32(lost * F32(HEADROOM))


def _cut(terms: Any, scale: Any) -> tuple[Any, Any, Any]:
    """Scaled values, and their parts."""
    with np.errstate(all="ignore"):
        values = np.array(terms, F32) * F32(scale)
        high = values.astype(np.float16)
        low = ((values - high.astype(F32)) * F32(LOW)).astype(np.float16)
    return values, high, low


def lost_of(terms: Any, scale: Any) -> Any:
    values, high, low = _cut(terms, scale)
    with np.errstate(all="ignore"):
        rest = np.abs((values - high.astype(F32)) * F32(LOW) - low.astype(F32))
    return F32(np.where(np.abs(values) < KEPT, rest, 0).sum() / LOW)


def _bits(memory: Any) -> Any:
    return memory.array if isinstance(memory, HalfMemory) else memory


def store_scaled(target: Any, index: int, terms: Any, scale: Any, part: int) -> None:
    assert len(terms) == 8
    assert index % 8 == 0
    for n, halves in enumerate(_cut(terms, scale)[1:]):
        _bits(target).view(np.uint16)[index + n * part :][:8] = halves.view(np.uint16)


def store_header(target: Any, index: int, header: Any) -> None:
    assert index % 8 == 0
    words = np.array([*header, 0, 0], F32)
    _bits(target).view(np.uint16)[index : index + 8] = words.view(np.uint16)


def row_header(source: Any, index: int) -> tuple[Any, Any]:
    assert index % 4 == 0
    return tuple(_bits(source)[index : index + 4].copy().view(F32))


def scaled_sums(
    sums: Any, p: Any, rows: int, columns: int, bounds: int, lane: int
) -> tuple[Any, ...]:
    found = list[Any]()
    for n, value in enumerate(sums):
        tile, of_tile = divmod(n, 4)
        row = rows + lane // 4 + 8 * (of_tile // 2)
        column = columns + 8 * tile + 2 * (lane % 4) + of_tile % 2
        with np.errstate(all="ignore"):
            sure = p[row + bounds] + p[column + bounds] <= abs(value) < np.inf
            found.append(value * p[row] * p[column] if sure else F32(np.nan))
    return tuple(found)
