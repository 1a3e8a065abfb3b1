"""Random functions of arrays, in chunks: elementwise, windows, steps, folded dimensions, reductions of rows
and of all, arrays that are written."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from irkit.errors import UnsupportedError
from tests.unit.jitted import check
from tests.unit.paged import Chunking

Array = np.ndarray[Any, Any]
Values = list[Any]
COLUMNS = 3


class Drawn:
    """Numbers that were drawn before: a function does the same each time that it is traced."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integers(self, low: int, high: int | None = None) -> int:
        return self._random.randrange(low) if high is None else self._random.randrange(low, high)


def _rows(rng: Drawn, values: Values) -> tuple[Array, Array]:
    """Two values with as many rows: the longer one is cut somewhere."""
    a: Any = values[rng.integers(len(values))]
    b: Any = values[rng.integers(len(values))]
    n = min(len(a), len(b))
    first, second = (rng.integers(len(v) - n + 1) for v in (a, b))
    return a[first : first + n], b[second : second + n]


def _add(rng: Drawn, values: Values) -> Any:
    a, b = _rows(rng, values)
    return np.add(a, b)


def _where(rng: Drawn, values: Values) -> Any:
    a, b = _rows(rng, values)
    return np.where(a > b, a, b * 0.5)


def _window(rng: Drawn, values: Values) -> Any:
    a = values[rng.integers(len(values))]
    reach = rng.integers(1, 3)
    return a[reach:] - a[:-reach] if len(a) > 12 else a * 2


def _steps(rng: Drawn, values: Values) -> Any:
    a = values[rng.integers(len(values))]
    return a[::2] + 1 if len(a) > 20 else a - 1


def _fold(rng: Drawn, values: Values) -> Any:
    a = values[rng.integers(len(values))]
    return np.abs(a.reshape(-1)).reshape(len(a), COLUMNS)


def _of_rows(rng: Drawn, values: Values) -> Any:
    a = values[rng.integers(len(values))]
    return a - a.max(axis=1, keepdims=True)


def _columns(rng: Drawn, values: Values) -> Any:
    a = values[rng.integers(len(values))]
    return np.stack([a[:, 2], a[:, 0], a[:, 1]], axis=1)


def _all(rng: Drawn, values: Values) -> Any:
    a = values[rng.integers(len(values))]
    reduced: Any = [np.mean, np.min, np.max][rng.integers(3)]
    return a * 0.5 - reduced(a)


STEPS: list[Callable[[Drawn, Values], Any]] = [
    _add,
    _where,
    _window,
    _steps,
    _fold,
    _of_rows,
    _columns,
    _all,
]


def made(seed: int) -> Callable[..., Any]:
    """A function of three arrays, the last of which it may write."""

    def function(x: Any, y: Any, out: Any) -> Any:
        rng = Drawn(seed)
        values: Values = [x, y]
        for _ in range(rng.integers(1, 6)):
            values.append(STEPS[rng.integers(len(STEPS))](rng, values))
        last = values[-1]
        written = rng.integers(3)
        if written:
            first = rng.integers(len(out) - len(last) + 1)
            out[first : first + len(last)] = last if written == 1 else last + out[: len(last)]
        return last, last.sum(axis=0), np.prod(np.tanh(last)) if rng.integers(2) else last.max()

    return function


def attempt(seed: int) -> bool:
    """Whether a random function was computed in chunks; if so, rightly."""
    rng = np.random.default_rng(seed + 1)
    rows = int(rng.integers(40, 90))
    arrays = [rng.standard_normal((rows, COLUMNS)) for _ in range(3)]
    chunking = Chunking(
        int(rng.integers(1500, 6000)), int(rng.integers(1, 5)), bool(rng.integers(2))
    )
    with suppress(UnsupportedError):
        check(made(seed), *arrays, tolerance=1e-9, jit=chunking)
    return chunking.last is not None and bool(chunking.sweeps)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_functions_in_chunks(start: int):
    assert sum(attempt(seed) for seed in range(start, start + 20)) >= 6
