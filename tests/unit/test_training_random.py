"""Random numbers of keys and counters: known answers, equal numbers everywhere, and layers that use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from irkit.dialects.graph.semantics.random import threefry
from irkit.errors import UnsupportedError
from irkit.training import layers, losses, random
from irkit.training.optimizers import SGD

OPTIONS: dict[str, Any] = {"target": "cpu", "cache": False}
# Random123's known answers of threefry2x32 with 20 rounds: counter, key, result.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def word(halves: tuple[int, ...]) -> np.ndarray:
    return np.array(halves[0] | halves[1] << 32, np.uint64)


def draws(key: Any) -> tuple[Any, ...]:
    return (
        random.bits(key, (3, 70)),
        random.uniform(key, (5, 7)),
        random.uniform(key, np.int64(9), np.float64),
        random.bernoulli(key, 0.3, (50,)),
        random.fold_in(key, np.array(5)),
        random.normal(key, (40,)),
        random.normal(key, (4, 5, 2), np.float64),
    )


def test_known_answers() -> None:
    for counter, key, wanted in KNOWN:
        assert threefry(word(key), word(counter)) == word(wanted)
    together = threefry(
        np.array([word(k) for _, k, _ in KNOWN]), np.array([word(c) for c, _, _ in KNOWN])
    )
    assert together.tolist() == [int(word(w)) for _, _, w in KNOWN]


def test_a_program_draws_the_numbers_of_numpy() -> None:
    key = random.key(12345678901234567)
    compiled, eager = irkit.jit(**OPTIONS)(draws)(key), draws(key)
    for mine, theirs in zip(compiled[:5], eager[:5], strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    np.testing.assert_allclose(compiled[5], eager[5], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compiled[6], eager[6], rtol=1e-12, atol=1e-14)


def test_numbers_hang_on_the_key_and_the_place_alone() -> None:
    key, n = random.key(3), 200_000
    u = random.uniform(key, (n,))
    np.testing.assert_array_equal(u[:100], random.uniform(key, (100,)))
    np.testing.assert_array_equal(u[:100], random.uniform(key, (10, 10)).ravel())
    keys = [key, *random.split(key, 3), random.fold_in(key, np.array(7)), random.key(4)]
    assert len({int(k) for k in keys}) == len(keys)
    # Means, variances and correlations are within five standard errors.
    others = [random.uniform(k, (n,), np.float64) - 0.5 for k in keys]
    found = np.array(others) @ np.array(others).T / n
    np.testing.assert_allclose(found, np.eye(len(keys)) / 12, atol=5 / np.sqrt(144 * n))
    assert abs(np.mean(others)) < 5 / np.sqrt(12 * n)
    counts = np.bincount((u * 64).astype(int), minlength=64)
    assert ((counts - n / 64) ** 2).sum() / (n / 64) < 63 + 5 * np.sqrt(2 * 63)
    assert 0 <= u.min() < u.max() < 1
    for dtype in (np.float32, np.float64):
        z = random.normal(key, (n,), dtype)
        assert abs(z.mean()) < 5 / np.sqrt(n)
        assert abs(z.var() - 1) < 5 * np.sqrt(2 / n)
        assert abs((z**4).mean() - 3) < 5 * np.sqrt(96 / n)
    assert abs(random.bernoulli(key, 0.3, (n,)).mean() - 0.3) < 5 * np.sqrt(0.21 / n)
    assert random.bernoulli(key, 1.0, (n,)).all()
    assert not random.bernoulli(key, 0.0, (n,)).any()


def test_the_gradient_of_dropout_has_the_mask_of_the_forward_pass() -> None:
    key, x = random.key(1), np.linspace(1, 2, 60, dtype=np.float32).reshape(6, 10)

    def summed(x: Any, key: Any) -> Any:
        return (random.dropout(key, x, 0.4) ** 2).sum()

    _, slope = irkit.value_and_grad(summed, **OPTIONS)(x, key)
    kept = random.bernoulli(key, 0.6, x.shape)
    assert 0 < kept.sum() < kept.size
    np.testing.assert_allclose(slope, np.where(kept, 2 * x / 0.36, 0), rtol=1e-5)


def noisy(p: Any, x: Any, key: Any, training: bool) -> Any:
    return layers.dropout(key, x, 0.5, training=training) * p["w"]


def test_each_step_has_numbers_of_its_own(tmp_path: Any) -> None:
    def step_of(seed: int) -> Any:
        return irkit.training_step(
            noisy, losses.mean_squared_error, SGD(0.0), parameters={"w": np.ones(40)}, seed=seed,
            **OPTIONS,
        )  # fmt: skip

    step, x = step_of(5), np.ones((1, 40))
    found = [step(x, np.zeros((1, 40))) for _ in range(3)]
    for number, loss in enumerate(found):
        key = random.fold_in(random.key(5), np.array(number))
        assert loss == pytest.approx(4 * random.bernoulli(key, 0.5, (1, 40)).mean(), rel=1e-12)
    assert len({float(f) for f in found}) > 1
    np.testing.assert_array_equal(step.evaluate(x), x)
    step.save(tmp_path / "state")
    other = step_of(6)
    other.load(tmp_path / "state")
    assert step(x, x) == other(x, x)


def normalised(p: Any, x: Any, training: bool, statistics: Any) -> Any:
    s = statistics
    return layers.batch_norm(x, p["s"], p["b"], s["mean"], s["variance"], training=training)


def test_a_round_of_a_loop_is_folded_into_a_key() -> None:
    def walk(key: Any, x: Any) -> Any:
        for t in range(40):
            x = np.tanh(random.dropout(random.fold_in(key, t + 1), x, 0.2) * 1.5)
        return x

    key, x = random.key(1), np.linspace(-1, 1, 30).reshape(5, 6)
    compiled = irkit.jit(**OPTIONS)(walk)
    np.testing.assert_allclose(compiled(key, x), walk(key, x), rtol=1e-12)
    assert "task.repeat" in compiled.compile(key, x).ir("schedule")
    slope = irkit.grad(lambda x, key: (walk(key, x) ** 2).sum(), **OPTIONS)(x, key)
    step = np.zeros_like(x)
    step[2, 3] = 1e-6
    ends = [(walk(key, x + s * step) ** 2).sum() for s in (1, -1)]
    assert slope[2, 3] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


def test_batch_normalisation() -> None:
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((4, 3, 5)) * 2 + 1, rng.standard_normal((4, 3, 5))
    start = {"s": rng.random(3) + 0.5, "b": rng.random(3)}
    statistics = {"mean": np.zeros(3), "variance": np.ones(3)}
    step = irkit.training_step(
        normalised, losses.mean_squared_error, SGD(0.1), parameters=start, statistics=statistics,
        **OPTIONS,
    )  # fmt: skip
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    z = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    y = z * start["s"][:, None] + start["b"][:, None]
    assert step(x, target) == pytest.approx(((y - target) ** 2).mean(), rel=1e-12)
    d = 2 * (y - target) / y.size
    kept, p = step.statistics, step.parameters
    np.testing.assert_allclose(p["s"], start["s"] - 0.1 * (d * z).sum((0, 2)), rtol=1e-11)
    np.testing.assert_allclose(kept["mean"], 0.1 * mean, rtol=1e-12)
    np.testing.assert_allclose(kept["variance"], 0.9 + 0.1 * variance * 20 / 19, rtol=1e-12)
    z = (x - kept["mean"][:, None]) / np.sqrt(kept["variance"][:, None] + 1e-5)
    wanted = z * p["s"][:, None] + p["b"][:, None]
    np.testing.assert_allclose(step.evaluate(x), wanted, rtol=1e-11)
    torch = pytest.importorskip("torch")
    layer = torch.nn.BatchNorm1d(3, dtype=torch.float64)
    layer(torch.tensor(x))
    np.testing.assert_allclose(kept["mean"], layer.running_mean.numpy())
    np.testing.assert_allclose(kept["variance"], layer.running_var.numpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: random.key(-1), r"random.key\(-1\)"),
        (lambda: random.uniform(3, (2,)), r"a key of random numbers is a uint64 of no dimensions, got int"),
        (lambda: random.bits(np.zeros(2, np.uint64), 3), r"got uint64\[2\]"),
        (lambda: random.uniform(random.key(0), 3, np.float16), r"random numbers of float16"),
        (lambda: random.bernoulli(random.key(0), 1.5, 3), r"share 1.5"),
        (lambda: random.dropout(random.key(0), np.ones(2), 1.0), r"rate 1.0"),
        (lambda: layers.batch_norm(np.ones((1, 3)), *np.ones((4, 3)), training=True), r"1 numbers a channel"),
        (lambda: random.fold_in(random.key(0), -1), r"fold_in of -1: expected a whole number from 0"),
        (lambda: random.fold_in(random.key(0), np.float64(1.5)), r"fold_in of np.float64\(1.5\): expected"),
        (lambda: random.fold_in(random.key(0), 2**63), r"fold_in of 9223372036854775808: expected"),
        (lambda: random.split(random.key(0), 0), r"random.split: 0 keys: expected 1 or more"),
        (lambda: layers.batch_norm(*np.ones((5, 3)), training=False), r"x of shape \[3\]: expected \(rows"),
        (
            lambda: layers.batch_norm(np.ones((2, 3)), *np.ones((4, 3), int), training=True),
            r"batch_norm: mean of int64: expected floats",
        ),
        (
            lambda: layers.batch_norm(np.ones((2, 3)), *np.ones((4, 3)), training=True, momentum=2),
            r"momentum=2: expected a number from 0 to 1",
        ),
    ],
    ids=[
        "seed", "number", "keys", "half", "share", "rate", "one", "folded", "folded fraction", "folded far",
        "none", "a row", "whole statistics", "momentum",
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        call()
