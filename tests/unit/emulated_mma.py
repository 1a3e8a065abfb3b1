"""What one warp does with tensor cores, for the emulator: sums as they lie in its lanes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from irkit.runtime.intrinsics import cuda_mma


def rounded(x: Any, kind: int) -> Any:
    """float32 values as a tensor core takes them: in TF32 or 16 bits."""
    if kind == cuda_mma.F16:
        return x.astype(np.float16).astype(np.float32)
    bits = 16 if kind == cuda_mma.BF16 else 13
    half = np.uint32(1 << (bits - 1))
    words = (x.view(np.uint32) + half) & ~np.uint32((1 << bits) - 1)
    return np.where(np.isfinite(x), words.view(np.float32), x)


@functools.cache
def held_sums(lane: int, rows: int, columns: int) -> tuple[Any, Any]:
    """Row and column of each sum that a lane holds, in order."""
    tiles = [(i, j) for i in range(0, rows, 16) for j in range(0, columns, 8)]
    y = np.array([i + lane // 4 + 8 * half for i, _ in tiles for half in (0, 0, 1, 1)])
    x = np.array([j + 2 * (lane % 4) + e for _, j in tiles for e in (0, 1, 0, 1)])
    # All who ask get the same.
    y.flags.writeable = x.flags.writeable = False
    return y, x


def mma_sums(sums: Any, p: Any, a: int, b: int, lane: int, *rest: int) -> tuple[Any, ...]:
    a_step, b_step, rows, columns, terms, by_k, kind = rest
    y, x = held_sums(lane, rows, columns)
    k = np.arange(terms)
    left = p[a + y[:, None] * a_step + k]
    right = p[b + (x[:, None] * b_step + k if by_k else k * b_step + x[:, None])]
    if kind != cuda_mma.SPLIT:
        left, right = rounded(left, kind), rounded(right, kind)
    return tuple(np.array(sums, np.float32) + (left * right).sum(axis=1, dtype=np.float32))


def magnitudes(least: Any, most: Any, p: Any, place: int, width: int) -> tuple[Any, Any]:
    twice = p[place : place + width].view(np.uint32) * np.uint32(2)
    return np.minimum((twice - np.uint32(1)).min(), least), np.maximum(twice.max(), most)


def mma_store(p: Any, position: int, step: int, sums: Any, columns: int, lane: int) -> None:
    y, x = held_sums(lane, len(sums) * 32 // columns, columns)
    p[position + y * step + x] = sums


def mma_store_across(p: Any, position: int, step: int, sums: Any, columns: int, lane: int) -> None:
    y, x = held_sums(lane, len(sums) * 32 // columns, columns)
    p[position + x * step + y] = sums


def any_unsure(sums: Any, least: Any) -> Any:
    sizes = np.abs(np.array(sums, np.float32))
    return np.int32(not ((sizes >= least) & (sizes < np.inf)).all())


def store_piece(
    p: Any, position: int, step: int, sums: Any, columns: int, piece: int, lane: int
) -> None:
    held = sums[piece * columns // 2 : (piece + 1) * columns // 2]
    mma_store(p, position, step, held, columns, lane)


def store_piece_across(
    p: Any, position: int, step: int, sums: Any, columns: int, piece: int, lane: int
) -> None:
    held = sums[piece * columns // 2 : (piece + 1) * columns // 2]
    mma_store_across(p, position, step, held, columns, lane)
