"""Steps of training that compute again what they do not keep: named by the user, and by a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from irkit.training import layers, losses, random
from irkit.training.checkpoints import checkpoint
from irkit.training.groups import simulated
from irkit.training.optimizers import SGD, Adam

OPTIONS: dict[str, Any] = {"target": "cpu", "device": "cpu2", "cache": False}
BLOCKS = 4


def block(x: Any, w: Any, v: Any) -> Any:
    return x + np.tanh(x @ w) @ v


def model_of(part: Callable[..., Any]) -> Callable[..., Any]:
    def model(weights: Any, x: Any) -> Any:
        for w, v in weights:
            x = part(x, w, v)
        return x

    return model


def weights() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    shapes = ((16, 64), (64, 16))
    return [
        tuple((rng.standard_normal(s) / 9).astype(np.float32) for s in shapes)
        for _ in range(BLOCKS)
    ]


def data() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return tuple(rng.standard_normal((64, 16)).astype(np.float32) for _ in range(2))


def trained(model: Callable[..., Any], **options: Any) -> tuple[dict[str, np.ndarray], Any]:
    """The state after three steps, and what the program is."""
    step = irkit.training_step(
        model, losses.mean_squared_error, Adam(0.01), parameters=weights(), **OPTIONS, **options
    )
    for _ in range(3):
        step(*data())
    return {name: np.array(array) for name, array in step.state.items()}, step.report()


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(a[n].tobytes() == b[n].tobytes() for n in a)


def test_segments_and_budgets_change_no_bit_and_take_less() -> None:
    kept, plain = trained(model_of(block))
    named, report = trained(model_of(checkpoint(block)))
    assert same(named, kept)
    assert report["arena_bytes"] < 0.6 * plain["arena_bytes"]
    budget = int(0.6 * plain["arena_bytes"])
    within, report = trained(model_of(block), memory_budget=budget)
    assert all(np.allclose(within[n], kept[n], 1e-4, 1e-6) for n in kept)
    assert report["arena_bytes"] <= budget
    assert report["memory_budget"] == budget
    assert report["proved"]


def test_random_numbers_are_the_same_again() -> None:
    """What is dropped in the backward pass is what was dropped before it."""

    def dropping(weights: Any, x: Any, key: Any, training: bool) -> Any:
        keys = random.split(key, BLOCKS) if training else [None] * BLOCKS
        for n, (w, v) in enumerate(weights):
            x = part(x, w, v, keys[n], training)
        return x

    def dropped(x: Any, w: Any, v: Any, key: Any, training: bool) -> Any:
        return x + layers.dropout(key, np.tanh(x @ w), 0.5, training=training) @ v

    part: Callable[..., Any] = dropped
    kept, plain = trained(dropping)
    part = checkpoint(dropped)
    named, report = trained(dropping)
    assert same(named, kept)
    assert report["arena_bytes"] < plain["arena_bytes"]


def test_as_plain_functions_and_in_gradients() -> None:
    x, w = np.linspace(0, 1, 4), np.eye(4)
    part = checkpoint(block)
    assert (part(x, w, w) == block(x, w, w)).all()

    def slope(f: Callable[..., Any]) -> Any:
        def twice(x: Any) -> Any:
            return f(f(x, w, w), w, w).sum()

        return irkit.grad(twice, target="cpu")(x)

    assert slope(part).tobytes() == slope(block).tobytes()


def test_a_budget_below_what_is_possible_is_refused_with_the_least() -> None:
    step = irkit.training_step(
        model_of(block),
        losses.mean_squared_error,
        SGD(0.1),
        parameters=weights(),
        memory_budget=1000,
        **OPTIONS,
    )
    with pytest.raises(UnsupportedError, match=r"budget = 1000: the least that was found is \d+"):
        step(*data())
    assert step.steps == 0
    for pair, given in zip(step.parameters, weights(), strict=True):
        assert all((a == b).all() for a, b in zip(pair, given, strict=True))


def test_what_is_no_budget_and_where_there_is_none() -> None:
    for budget in (0, -1, 1.5, True, "1 GB"):
        with pytest.raises(UnsupportedError, match=r"memory_budget = .*expected a number of bytes"):
            irkit.jit(memory_budget=budget)(block)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(UnsupportedError, match="memory_budget with data_parallel"):
        irkit.training_step(
            model_of(block),
            losses.mean_squared_error,
            SGD(0.1),
            parameters=weights(),
            memory_budget=1 << 20,
            data_parallel=simulated(1)[0],
            **OPTIONS,
        )
    step = irkit.training_step(
        model_of(checkpoint(block)),
        losses.mean_squared_error,
        SGD(0.1),
        parameters=weights(),
        data_parallel=simulated(1)[0],
        **OPTIONS,
    )
    with pytest.raises(UnsupportedError, match="data_parallel with checkpoint"):
        step(*data())
    with pytest.raises(UnsupportedError, match="checkpoint of int: expected a function"):
        checkpoint(3)  # pyright: ignore[reportArgumentType]
