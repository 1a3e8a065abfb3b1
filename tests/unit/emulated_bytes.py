"""What `irkit.runtime.intrinsics.cuda_bytes` computes, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def four_bytes(*values: Any) -> Any:
    return np.array([int(v) & 255 for v in values], np.uint8).view(np.int32)[0]


def words_at(p: Any, index: int, count: int, aligned: int) -> tuple[Any, ...]:
    found = p[index : index + 4 * count]
    assert len(found) == 4 * count
    assert index >= 0
    assert not aligned or index % (4 * count) == 0
    return tuple(found.copy().view(np.int32))


def turn_words(*words: Any) -> tuple[Any, ...]:
    rows = np.array(words, np.int32).view(np.uint8).reshape(4, 4)
    return tuple(np.ascontiguousarray(rows.T).view(np.int32)[:, 0])


def integer_zeros(count: int) -> tuple[Any, ...]:
    return (np.int32(0),) * count


def _terms(words: Any, signed: int) -> Any:
    return np.asarray(words, np.int32).view(np.int8 if signed else np.uint8).astype(np.int64)


def dot4(a: Any, b: Any, total: Any, of_signed: int, by_signed: int) -> Any:
    products = _terms(np.array([a]), of_signed) * _terms(np.array([b]), by_signed)
    return (products.sum() + int(total)).astype(np.int32)


def mma_bytes(sums: Any, p: Any, a: int, b: int, lane: int, *rest: int) -> tuple[Any, ...]:
    step, rows, columns, words, of_signed, by_signed = rest
    tiles = [(i, j) for i in range(0, rows, 16) for j in range(0, columns, 8)]
    y = np.array([i + lane // 4 + 8 * half for i, _ in tiles for half in (0, 0, 1, 1)])
    x = np.array([j + 2 * (lane % 4) + e for _, j in tiles for e in (0, 1, 0, 1)])
    k = np.arange(words)
    left, right = p[a + y[:, None] * step + k], p[b + x[:, None] * step + k]
    products = (_terms(left, of_signed) * _terms(right, by_signed)).sum(axis=1)
    return tuple((np.array(sums, np.int64) + products).astype(np.int32))


NAMES = {f.__name__: f for f in (dot4, four_bytes, integer_zeros, mma_bytes, turn_words, words_at)}
