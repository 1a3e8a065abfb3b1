"""Loops that are differentiated in chunks of their rounds: the same gradients, in fewer bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import interpreted

import irkit
from irkit.driver.programs.chunked import chunked_loops
from irkit.errors import UnsupportedError
from irkit.training import losses, optimizers

RNG = np.random.default_rng(0)
W, U = RNG.standard_normal((3, 5)) / 2, RNG.standard_normal((5, 5)) / 4


def forwards(w: Any, u: Any, x: Any) -> Any:
    """The rows of x one after another."""
    h = np.zeros((x.shape[1], 5))
    for t in range(len(x)):
        h = np.tanh(x[t] @ w + h @ u)
    return (h**2).sum()


def backwards(w: Any, u: Any, x: Any) -> Any:
    """From the last row to the first, and all that was made is read."""
    h, found = np.zeros((x.shape[1], 5)), np.zeros((len(x), x.shape[1], 5))
    for t in range(len(x) - 1, -1, -1):
        h = np.tanh(x[t] @ w + h @ u)
        found[t] = h * x[t, :, :1]
    return (found**2).sum()


def by_twos(w: Any, u: Any, x: Any) -> Any:
    """Every other row, and the one behind it."""
    h = np.zeros((x.shape[1], 5))
    for t in range(1, len(x) - 1, 2):
        h = np.sin((x[t] * x[t + 1]) @ w + h @ u)
    return (h**3).sum()


def nested(w: Any, u: Any, x: Any) -> Any:
    """A loop in a loop, which reads rows of the array outside of both."""
    h = np.zeros((x.shape[1], 5))
    for t in range(len(x) - 3):
        for s in range(3):
            h = np.tanh(x[t + s] @ w + h @ u)
    return h.sum()


@pytest.mark.parametrize(
    ("function", "rows"), [(forwards, 39), (backwards, 36), (by_twos, 43), (nested, 20)]
)
def test_chunks_have_the_same_gradients(function: Callable[..., Any], rows: int) -> None:
    x = np.random.default_rng(1).standard_normal((rows, 2, 3))
    slope: Any = irkit.grad(function, (0, 1, 2))
    plain = interpreted(slope.__wrapped__)(W, U, x)
    with chunked_loops():
        found = interpreted(slope.__wrapped__)(W, U, x)
    assert any(a.tobytes() != b.tobytes() for a, b in zip(plain, found, strict=True))
    for a, b in zip(plain, found, strict=True):
        assert np.allclose(a, b, 1e-11, 1e-13)


def test_a_step_with_loops_keeps_within_its_budget_or_names_the_least() -> None:
    x, y = np.ones((101, 32, 3)), np.ones((32, 5))

    def model(p: Any, x: Any) -> Any:
        h = np.zeros((x.shape[1], 5))
        for t in range(len(x)):
            h = np.tanh(x[t] @ p[0] + h @ p[1])
            h = np.tanh(np.tanh(np.tanh(h @ p[1]) @ p[1]) @ p[1])
        return h

    def needed(budget: int) -> int:
        step = irkit.training_step(
            model,
            losses.mean_squared_error,
            optimizers.SGD(0.1),
            parameters=(W, U),
            memory_budget=budget,
            target="cpu",
            device="cpu2",
        )
        return step.compile(x, y).report()["arena_bytes"]

    with pytest.raises(UnsupportedError) as error:
        needed(1000)
    budget, least, plain = map(int, re.findall(r"\d+", str(error.value)))
    assert budget == 1000
    assert least < 0.8 * plain
    assert needed(least) == least
