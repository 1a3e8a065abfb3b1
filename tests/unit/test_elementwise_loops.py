"""Loops that have each element go its own way: several turns at once, with NumPy's bits."""

# pyright: basic
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit

Array = np.ndarray[Any, np.dtype[Any]]
STEPS: list[Callable[..., Any]] = [
    lambda x, y, n: (y, x * y),
    lambda x, y, n: (x - y * n, np.maximum(x, y)),
    lambda x, y, n: (np.where(x > y, x + 1, y), x),
    lambda x, y, n: (np.sqrt(abs(x)) + n, y / (abs(x) + 1)),
    lambda x, y, n: (np.minimum(x, 3) * 0.5, np.where(y == n, x, y)),
]


def turned(calls: int, step: Callable[..., Any]) -> Callable[..., Any]:
    def program(x: Array, y: Array) -> Any:
        for n in irkit.range(calls):
            x, y = step(x, y, n)
        return x, y

    return program


@pytest.mark.parametrize("seed", range(20))
def test_random_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (STEPS[i] for i in rng.integers(0, len(STEPS), 2))
    turns = int(rng.integers(3, 60))
    kind = (np.float64, np.float32)[seed % 2]
    shape = ((37,), (5, 11), (2, 3, 4), (1, 8), (), (1, 1))[seed % 6]
    x, y = (rng.normal(size=shape).astype(kind) for _ in range(2))

    def step(x: Array, y: Array, n: Any) -> Any:
        return second(*first(x, y, n), n)

    program = turned(turns, step)
    with np.errstate(all="ignore"):
        want = program(x, y)
    got = irkit.jit(target="cpu")(program)(x, y)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(np.asarray(b), np.asarray(a))
        assert np.asarray(b).dtype == np.asarray(a).dtype


def test_turns_are_done_together() -> None:
    def logistic(x: Array, r: Array) -> Array:
        for _ in irkit.range(100):
            x = r * x * (1 - x)
        return x

    compiled = irkit.jit(target="cpu", device="cpu1")(logistic)
    x, r = np.linspace(0, 1, 1000), np.linspace(1, 4, 1000)
    np.testing.assert_array_equal(compiled(x, r), logistic(x, r))
    # The first turn is one of its own; of the others ten, of three ops each, are done at once.
    assert re.findall(r"Repeated\((\d+)", compiled.source) == ["9"]
