"""Random rows, and the forms in which a caller may have them."""

# pyright: basic

from __future__ import annotations

import random
from typing import Any

import numpy as np

FITTED = 60
ASKED = 23
TOO_LARGE = "too large"
"""The form of which squares overflow: what matters is that it is refused where the library refuses it."""


def numbers(rng: random.Random, rows: int, columns: int, kind: str) -> Any:
    """Rows of numbers: "normal", "positive", "whole" (small integers, so that there are ties) or "wide"."""
    noise = np.random.default_rng(rng.randrange(1 << 30))
    x = noise.standard_normal((rows, columns))
    if kind == "positive":
        return np.abs(x) + 0.01
    if kind == "whole":
        return np.floor(np.abs(x) * 3)
    if kind == "wide":
        return x * 10.0 ** noise.integers(-6, 6, columns)
    return x


def with_gaps(rng: random.Random, x: Any) -> Any:
    """Some of it is NaN."""
    noise = np.random.default_rng(rng.randrange(1 << 30))
    return np.where(noise.random(x.shape) < 0.15, np.nan, x)


def labels(rng: random.Random, x: Any, classes: int) -> Any:
    """A label a row, of any type that labels may have."""
    noise = np.random.default_rng(rng.randrange(1 << 30))
    score = (
        np.nan_to_num(x[:, 0]) / (np.nanstd(x[:, 0]) + 1e-300) + noise.standard_normal(len(x)) * 0.3
    )
    codes = np.clip(
        np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score), 0, classes - 1
    )
    names = rng.choice((
        np.arange(classes), np.arange(classes) * 3 - 4, np.array(["b", "a", "zz", "é"], object),
        np.array(["no", "yes", "maybe", "x"]), np.arange(classes, dtype=np.int8), np.arange(classes) + 0.0,
        np.array([False, True, True, True]) if classes == 2 else np.arange(classes, dtype=np.uint16),
    ))  # fmt: skip
    return names[codes]


def target(rng: random.Random, x: Any) -> Any:
    """A number a row."""
    noise = np.random.default_rng(rng.randrange(1 << 30))
    x = np.nan_to_num(x) / (np.nanstd(x, axis=0) + 1e-300)
    return np.abs(x[:, 0] + 0.3 * x[:, -1] ** 2 + noise.standard_normal(len(x)) * 0.1) + 0.05


def forms(rng: random.Random, x: Any) -> list[tuple[str, Any]]:
    """The same rows as callers may hold them, and rows that are refused."""
    backwards = np.ascontiguousarray(x[::-1])[::-1]
    locked = x.copy()
    locked.setflags(write=False)
    unaligned = np.frombuffer(b"\0" + x.tobytes(), x.dtype, x.size, 1).reshape(x.shape)
    some: list[tuple[str, Any]] = [
        ("as it is", x), ("one row", x[:1]), ("in Fortran order", np.asfortranarray(x)),
        ("backwards", backwards), ("every second", np.repeat(x, 2, 0)[::2]), ("read-only", locked),
        ("unaligned", unaligned), ("big-endian", x.astype(">f8")), ("float32", x.astype(np.float32)),
        ("a list", x.tolist()), ("objects", x.astype(object)), ("no rows", x[:0]),
        ("one column more", np.hstack([x, x[:, :1]])), ("one row of one dimension", x[0]),
        ("NaN", _spoilt(x, np.nan)), ("infinity", _spoilt(x, np.inf)), ("large", _spoilt(x, 1e6)),
        (TOO_LARGE, _spoilt(x, 1e300)),
        ("zeros", np.zeros_like(x)), ("float16", x.astype(np.float16)), ("whole", np.round(x).astype(int)),
        ("bytes", np.round(x).astype(np.int8)), ("booleans", x > 0), ("complex", x + 0j),
        ("strings of numbers", x.astype(str)), ("long doubles", x.astype(np.longdouble)),
        ("unsigned", np.round(np.abs(x)).astype(np.uint64)),
    ]  # fmt: skip
    return [some[0], *rng.sample(some[1:], 5)]


def _spoilt(x: Any, value: float) -> Any:
    x = x.copy()
    x[len(x) // 2, -1] = value
    return x
