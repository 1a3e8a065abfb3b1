"""Regions in chunks: every function computed in chunks is the function, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import check
from tests.unit.paged import Chunking


def scaled(x: Any, y: Any) -> Any:
    return x * 2 + y


def several(x: Any, w: Any) -> Any:
    y = np.maximum(x * w, 0) + 1
    return y, y.sum(), y.mean(), (x @ w.reshape(-1, 1))[:, 0], y.max(axis=0)


def stencil(x: Any, out: Any) -> None:
    out[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, 2:]


def in_place(x: Any) -> Any:
    x *= 2
    return x.sum()


def neighbours(a: Any) -> None:
    a[1:-1] = a[:-2] + a[2:]


def standardised(x: Any) -> Any:
    return (x - x.mean()) / x.std()


def shifted(x: Any) -> Any:
    z = np.zeros_like(x)
    z[1:-1] = x[:-2]
    return z


def over_a_copy(x: Any) -> Any:
    z = x.copy()
    z[2:] = x[:-2] * 3
    return z


def windows_of_windows(x: Any) -> Any:
    t = x[:-2] + x[2:]
    return t[:-2] - t[2:]


def folded(x: Any) -> Any:
    return x.reshape(-1) * 2, x.reshape(-1, 2).sum(axis=1)


def extremes(x: Any, y: Any) -> Any:
    return np.minimum(x, y).min(), np.maximum(x, y).max(), (x * y).prod()


def softmax_rows(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_all(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def every_other(x: Any, y: Any) -> Any:
    return x[::2] + y


def reduced(x: Any) -> Any:
    return x.sum(), x.min(), x.max(), x.prod()


def table(i: Any, t: Any) -> Any:
    return np.take(t, i, axis=0)


def product(x: Any, w: Any) -> Any:
    return np.tanh(x @ w).sum(axis=1)


RNG = np.random.default_rng(0)
PLANE, LINE = RNG.standard_normal((97, 4)), RNG.standard_normal(101)
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (scaled, (LINE, LINE * 3), 1000),
    (several, (PLANE, RNG.random(4)), 3000),
    (stencil, (PLANE, PLANE * 5), 3000),
    (in_place, (LINE,), 700),
    (neighbours, (LINE,), 700),
    (standardised, (LINE,), 1500),
    (shifted, (PLANE,), 2700),
    (over_a_copy, (PLANE,), 3000),
    (windows_of_windows, (LINE,), 700),
    (folded, (RNG.standard_normal((64, 4)),), 2000),
    (extremes, (LINE, LINE[::-1].copy()), 1000),
    (softmax_rows, (PLANE,), 2000),
    (softmax_all, (LINE,), 1500),
    (every_other, (RNG.standard_normal(200), LINE[:100]), 1000),
    (table, (RNG.integers(0, 4, 200), RNG.standard_normal(4)), 1000),
    (product, (PLANE, RNG.standard_normal((4, 3))), 2000),
]
NAMES = [function.__name__ for function, _, _ in CASES]


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize(("function", "arguments", "limit"), CASES, ids=NAMES)
def test_functions_in_chunks(
    function: Callable[..., Any], arguments: tuple[Any, ...], limit: int, values: bool
):
    chunking = Chunking(limit, values=values)
    check(function, *arguments, tolerance=1e-12, jit=chunking)
    assert chunking.sweeps
    for sweep in chunking.sweeps:
        assert sweep.chunks > 3
        assert sweep.size.nbytes * len(chunking.sweeps) <= limit


SIZED: list[Callable[..., Any]] = [
    scaled,
    several,
    stencil,
    neighbours,
    standardised,
    over_a_copy,
    in_place,
]


@pytest.mark.parametrize("seed", range(60))
def test_random_sizes(seed: int):
    rng = np.random.default_rng(seed)
    function = SIZED[seed % len(SIZED)]
    rows, columns = int(rng.integers(5, 80)), int(rng.integers(3, 6))
    dtype = [np.float64, np.float32][int(rng.integers(2))]
    x = rng.standard_normal((rows, columns)).astype(dtype)
    second: list[Any] = {
        scaled: [x * 3],
        several: [rng.random(columns).astype(dtype)],
        stencil: [x * 5],
    }.get(function, [])
    # The windows of a stencil are longer than what little has.
    limit = int(x.nbytes * rng.uniform(0.6, 1.0)) + 60 * columns * x.itemsize
    chunking = Chunking(limit, int(rng.integers(1, 5)), bool(rng.integers(2)))
    check(function, x, *second, tolerance=1e-4 if dtype == np.float32 else 1e-10, jit=chunking)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8"])
def test_integers_are_exact(dtype: str):
    x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 999).astype(dtype)
    chunking = Chunking(x.nbytes // 2)
    check(reduced, x, jit=chunking)
    assert chunking.sweeps[0].merged


def ordered(x: Any) -> Any:
    return np.sort(x)


def running(x: Any) -> Any:
    return x.cumsum()


def backward(x: Any) -> Any:
    return x[::-1] * 2


def elements(x: Any) -> Any:
    return x[0] * 2 + x[5]


def turned(x: Any, y: Any) -> Any:
    return x.T + y


def doubled(x: Any) -> Any:
    return np.concatenate([x, x])


def multiplied(x: Any, w: Any) -> Any:
    return x @ w


def looped(x: Any) -> Any:
    for _ in irkit.range(9):
        x = x * 2
    return x


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (ordered, (LINE,), "picks along dimension 0"),
    (running, (LINE,), "graph.cumsum"),
    (backward, (LINE,), "backward"),
    (elements, (LINE,), "all of argument %x"),
    (turned, (PLANE, RNG.random((4, 97))), "do not lie in one piece"),
    (doubled, (LINE,), "those of no operand"),
    (multiplied, (RNG.random((40, 40)), RNG.random((40, 40))), "as a whole, that"),
    (looped, (LINE,), "a loop has all of what it carries"),
]


@pytest.mark.parametrize(("function", "arguments", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(function: Callable[..., Any], arguments: tuple[Any, ...], reason: str):
    with pytest.raises(UnsupportedError, match="not computed in chunks") as error:
        Chunking(600)(function)(*arguments)
    assert reason in str(error.value)
    assert "test_page.py" in str(error.value) or "argument" in str(error.value)


def test_a_limit_below_one_chunk():
    with pytest.raises(UnsupportedError, match="a chunk of one row takes 88 bytes on the device"):
        Chunking(80)(scaled)(LINE, LINE.copy())


def test_what_fits_stays_as_it_is():
    chunking = Chunking(3 * LINE.nbytes)
    check(scaled, LINE, LINE.copy(), jit=chunking)
    assert chunking.sweeps == []
