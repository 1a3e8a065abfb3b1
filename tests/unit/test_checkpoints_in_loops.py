"""Segments in programs that have loops: the same numbers, and of segments only what leaves them is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import interpreted

import irkit
from irkit.training import layers, losses, random
from irkit.training.checkpoints import checkpoint
from irkit.training.optimizers import Adam

RNG = np.random.default_rng(0)
W, U, V = (RNG.standard_normal(s) / 8 for s in ((6, 24), (24, 6), (6, 6)))
X = RNG.standard_normal((30, 5, 6))
KEY = random.key(3)


def cell(h: Any, x: Any, w: Any, u: Any) -> Any:
    return h + np.tanh(np.maximum((h + x) @ w, 0) @ u)


def recurrent(part: Callable[..., Any]) -> Callable[..., Any]:
    def loss(w: Any, u: Any, v: Any, x: Any) -> Any:
        h = np.zeros(x.shape[1:])
        for t in range(len(x)):
            h = part(h, x[t], w, u)
        return ((h @ v) ** 2).sum()

    return loss


def beside(part: Callable[..., Any]) -> Callable[..., Any]:
    """Segments before and behind a loop."""

    def loss(w: Any, u: Any, v: Any, x: Any) -> Any:
        h = part(x[0], x[1], w, u)
        for t in range(len(x)):
            h = np.sin(h @ v) + x[t]
        h = random.dropout(KEY, part(h, part(h, h, w, u), w, u), 0.2)
        return (h * h).sum()

    return loss


def around(part: Callable[..., Any]) -> Callable[..., Any]:
    """A loop in a segment, with more beside it in that, and a segment in a segment."""

    def whole(h: Any, x: Any, w: Any, u: Any, v: Any) -> Any:
        h = np.cos(h @ v)
        for t in range(len(x)):
            h = part(h, x[t], w, u)
        return h * x[0] @ v

    named = whole if part is cell else checkpoint(whole)

    def loss(w: Any, u: Any, v: Any, x: Any) -> Any:
        h = named(x[0], x, w, u, v)
        return (named(h, x, w, u, v) ** 2).sum()

    return loss


def asking(part: Callable[..., Any]) -> Callable[..., Any]:
    def loss(w: Any, u: Any, v: Any, x: Any) -> Any:
        def body(h: Any) -> tuple[Any]:
            return (part(h, x[0], w, u),)

        (h,) = irkit.while_loop(lambda h: (h * h).sum() < 900, body, (x[1] @ v,), most=20)
        return (h**2).sum()

    return loss


@pytest.mark.parametrize("make", [recurrent, beside, around, asking])
def test_the_same_gradients(make: Callable[..., Any]) -> None:
    found = [
        interpreted(irkit.grad(make(part), (0, 1, 2, 3)).__wrapped__)(W, U, V, X)
        for part in (cell, checkpoint(cell))
    ]
    for kept, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, kept, rtol=1e-11, atol=1e-12)
    way = [RNG.standard_normal(a.shape) for a in (W, U, V, X)]
    ends = [
        make(cell)(*(a + e * d for a, d in zip((W, U, V, X), way, strict=True)))
        for e in (1e-6, -1e-6)
    ]
    got = sum(float((g * d).sum()) for g, d in zip(found[1], way, strict=True))
    np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(("make", "share"), [(recurrent, 0.5), (beside, 0.9), (around, 0.5)])
def test_less_is_kept(make: Callable[..., Any], share: float) -> None:
    x = RNG.standard_normal((30, 40, 6))
    arenas = []
    for part in (cell, checkpoint(cell)):
        step = irkit.value_and_grad(make(part), (0, 1, 2), target="cpu", device="cpu2", cache=False)
        arenas.append((step(W, U, V, x), step.report()["arena_bytes"]))
    (kept, most), (again, less) = arenas
    assert less <= share * most
    np.testing.assert_allclose(again[0], kept[0], rtol=1e-12)


def test_a_step_of_training() -> None:
    """With dropout in segments, statistics of batches, and a loop beside: the same state, and evaluation."""

    def step_of(part: Callable[..., Any]) -> Any:
        def block(p: Any, h: Any, key: Any, training: bool) -> Any:
            return layers.dropout(key, np.tanh(h @ p["v"]), 0.3, training=training)

        segment = part(block)

        def model(p: Any, x: Any, statistics: Any, training: bool, key: Any) -> Any:
            h = layers.batch_norm(
                x, p["g"], p["b"], statistics["m"], statistics["s"], training=training
            )
            for _ in range(6):
                h = np.sin(h @ p["v"]) + h
            return segment(p, h, key, training) @ p["w"]

        return irkit.training_step(
            model,
            losses.softmax_cross_entropy,
            Adam(0.01, clip_norm=0.5),
            parameters={"v": V, "w": W[:, :3], "g": np.ones(6), "b": np.zeros(6)},
            statistics={"m": np.zeros(6), "s": np.ones(6)},
            target="cpu",
            device="cpu2",
        )

    x, y = X[0], np.arange(5) % 3
    plain, named = step_of(lambda f: f), step_of(checkpoint)
    for _ in range(3):
        np.testing.assert_allclose(named(x, y), plain(x, y), rtol=1e-12)
    for name, array in plain.state.items():
        np.testing.assert_allclose(named.state[name], array, rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(named.evaluate(x), plain.evaluate(x), rtol=1e-9)


def test_a_program_that_is_not_differentiated() -> None:
    jitted = irkit.jit(recurrent(checkpoint(cell)), target="cpu", device="cpu2")
    np.testing.assert_allclose(jitted(W, U, V, X), recurrent(cell)(W, U, V, X), rtol=1e-12)
