"""Optimisers and schedules beside their formulas, written out in float64, and beside PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irkit.errors import UnsupportedError
from irkit.training import schedules
from irkit.training.clipping import clipped
from irkit.training.optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, RMSProp

STEPS = 7


def gradients(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(5) * 10.0 ** rng.integers(-2, 3) for _ in range(STEPS)]


def ours(optimizer: Optimizer, start: np.ndarray, given: list[np.ndarray]) -> np.ndarray:
    """The parameter after all steps."""
    parameter = start
    slots: dict[str, Any] = {name: np.zeros_like(start) for name in optimizer.slots}
    for done, gradient in enumerate(given):
        ((parameter, slots),) = optimizer.apply([parameter], [gradient], [slots], np.int64(done))
        assert tuple(slots) == optimizer.slots
        assert parameter.dtype == start.dtype
    return parameter


def sgd(p: float, given: list[float], momentum: float, nesterov: bool, decay: float) -> float:
    b = 0.0
    for g in given:
        g += decay * p
        b = momentum * b + g
        p -= 0.1 * (g + momentum * b if nesterov else b)
    return p


def adam(p: float, given: list[float], decay: float, apart: bool) -> float:
    m = v = 0.0
    for t, g in enumerate(given, 1):
        if apart:
            p -= 0.1 * decay * p
        else:
            g += decay * p
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p -= 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p


def adagrad(p: float, given: list[float], fall: float) -> float:
    s = 0.0
    for t, g in enumerate(given):
        s += g * g
        p -= 0.1 / (1 + t * fall) * g / (math.sqrt(s) + 1e-10)
    return p


def rmsprop(p: float, given: list[float], momentum: float, centered: bool) -> float:
    v = a = b = 0.0
    for g in given:
        v, a = 0.99 * v + 0.01 * g * g, 0.99 * a + 0.01 * g
        b = momentum * b + g / (math.sqrt(v - a * a if centered else v) + 1e-8)
        p -= 0.1 * b
    return p


CASES: dict[str, tuple[Optimizer, Callable[[float, list[float]], float], str, dict[str, Any]]] = {
    "sgd": (SGD(0.1), lambda p, g: sgd(p, g, 0, False, 0), "SGD", {}),
    "decayed": (
        SGD(0.1, weight_decay=0.3),
        lambda p, g: sgd(p, g, 0, False, 0.3),
        "SGD",
        {"weight_decay": 0.3},
    ),
    "momentum": (
        SGD(0.1, momentum=0.9),
        lambda p, g: sgd(p, g, 0.9, False, 0),
        "SGD",
        {"momentum": 0.9},
    ),
    "nesterov": (
        SGD(0.1, momentum=0.8, nesterov=True, weight_decay=0.01),
        lambda p, g: sgd(p, g, 0.8, True, 0.01),
        "SGD",
        {"momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": (
        Adam(0.1, weight_decay=0.1),
        lambda p, g: adam(p, g, 0.1, False),
        "Adam",
        {"weight_decay": 0.1},
    ),
    "adamw": (AdamW(0.1), lambda p, g: adam(p, g, 0.01, True), "AdamW", {}),
    "adagrad": (
        Adagrad(0.1, rate_decay=0.2),
        lambda p, g: adagrad(p, g, 0.2),
        "Adagrad",
        {"lr_decay": 0.2},
    ),
    "rmsprop": (RMSProp(0.1), lambda p, g: rmsprop(p, g, 0, False), "RMSprop", {}),
    "centered": (
        RMSProp(0.1, centered=True, momentum=0.5),
        lambda p, g: rmsprop(p, g, 0.5, True),
        "RMSprop",
        {"centered": True, "momentum": 0.5},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_are_the_formulas(name: str) -> None:
    optimizer, formula, _, _ = CASES[name]
    start, given = np.linspace(-2, 2, 5), gradients(len(name))
    wanted = [formula(p, [float(g[n]) for g in given]) for n, p in enumerate(start.tolist())]
    np.testing.assert_allclose(ours(optimizer, start, given), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_float32_is_as_near_as_rounding_lets_it(name: str) -> None:
    optimizer, formula, _, _ = CASES[name]
    start, given = np.linspace(-2, 2, 5, dtype=np.float32), gradients(3)
    found = ours(optimizer, start, [g.astype(np.float32) for g in given])
    wanted = [formula(p, [float(g[n]) for g in given]) for n, p in enumerate(start.tolist())]
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_steps_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    optimizer, _, kind, options = CASES[name]
    start, given = np.linspace(-2, 2, 5), gradients(1)
    parameter = torch.nn.Parameter(torch.tensor(start))
    theirs = getattr(torch.optim, kind)([parameter], lr=0.1, **options)
    for gradient in given:
        parameter.grad = torch.tensor(gradient)
        theirs.step()
    np.testing.assert_allclose(
        ours(optimizer, start, given), parameter.detach().numpy(), rtol=1e-10
    )


def test_clipping() -> None:
    a, b = np.array([3.0, -4.0]), np.array([[12.0]])
    assert [g.tolist() for g in clipped([a, b], 3.5, None)] == [[3, -3.5], [[3.5]]]
    small = clipped([a, b], None, 6.5)
    np.testing.assert_allclose(np.concatenate([g.ravel() for g in small]), [1.5, -2, 6], rtol=1e-6)
    same = clipped([a, b], None, 14.0)
    assert [g.tolist() for g in same] == [a.tolist(), b.tolist()]
    # By value first, then by the norm of what is left.
    both = clipped([a, b], 3.0, 3.0)
    np.testing.assert_allclose(
        np.concatenate([g.ravel() for g in both]), [3**0.5, -(3**0.5), 3**0.5], rtol=1e-6
    )
    torch = pytest.importorskip("torch")
    given = [torch.nn.Parameter(torch.tensor(g)) for g in (a, b)]
    for p, g in zip(given, (a, b), strict=True):
        p.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_norm_(given, 6.5)
    for mine, p in zip(small, given, strict=True):
        np.testing.assert_allclose(mine, p.grad.numpy(), rtol=1e-12)


def test_schedules() -> None:
    def at(schedule: Any, steps: range) -> list[float]:
        return [float(schedule(np.int64(n))) for n in steps]

    assert at(schedules.exponential(0.5, 0.1), range(3)) == pytest.approx([0.5, 0.05, 0.005])
    assert at(schedules.staircase(1.0, 2, 0.5), range(5)) == [1, 1, 0.5, 0.5, 0.25]
    assert at(schedules.linear(1.0, 0.2, 4), range(6)) == pytest.approx(
        [1, 0.8, 0.6, 0.4, 0.2, 0.2]
    )
    half = schedules.cosine(1.0, 4)
    assert at(half, range(6)) == pytest.approx(
        [(1 + math.cos(math.pi * n / 4)) / 2 for n in (0, 1, 2, 3, 4, 4)]
    )
    warm = schedules.warmed_up(schedules.staircase(1.0, 1, 0.5), 2)
    assert at(warm, range(5)) == [0.5, 1, 1, 0.5, 0.25]
    assert at(schedules.warmed_up(3.0, 3), range(4)) == [1, 2, 3, 3]


def test_a_schedule_is_asked_at_each_step() -> None:
    given = [np.ones(1)] * 4
    found = ours(SGD(schedules.staircase(1.0, 2, 0.5)), np.zeros(1), given)
    assert found.tolist() == [-3.0]


ONE = np.ones(1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SGD(-0.1), r"SGD: rate=-0.1: expected a number that is not below 0"),
        (lambda: SGD("fast"), r"SGD: rate='fast': expected a number that is not below 0"),
        (lambda: SGD(None), r"SGD: rate=None: expected a number that is not below 0"),
        (lambda: SGD(0.1, momentum="much"), r"momentum='much': expected a number from 0"),
        (lambda: SGD(0.1, momentum=1.0), r"momentum=1.0: expected a number from 0 to below 1"),
        (lambda: SGD(0.1, nesterov=True), r"nesterov=True: expected momentum above 0"),
        (lambda: Adam(beta2=1.5), r"Adam: beta2=1.5"),
        (lambda: Adam(clip_norm=math.nan), r"clip_norm=nan"),
        (lambda: schedules.cosine(1.0, 0), r"cosine: 0 steps"),
        (lambda: SGD(math.inf), r"SGD: rate=inf: expected a finite number"),
        (lambda: schedules.linear("a", 0.1, 3), r"linear: rate 'a': expected a number"),
        (lambda: schedules.staircase(1.0, 2.5), r"staircase: 2.5 steps"),
        (lambda: schedules.warmed_up(None, 3), r"warmed_up: rate None"),
        (
            lambda: ours(SGD(lambda n: np.ones(3)), ONE, [ONE]),
            r"gives an array of shape \[3\]: expected one",
        ),
        (lambda: ours(SGD(lambda n: "fast"), ONE, [ONE]), r"the schedule of the rate gives str"),
        (
            lambda: ours(SGD(lambda n: n * 1j), ONE, [ONE]),
            r"the schedule of the rate gives complex128",
        ),
        (lambda: ours(SGD(lambda n: n >= 0), ONE, [ONE]), r"the schedule of the rate gives bool"),
    ],
    ids=[
        "rate",
        "text",
        "none",
        "momentum text",
        "momentum",
        "nesterov",
        "beta",
        "nan",
        "steps",
        "infinite",
        "rate text",
        "half a step",
        "no rate",
        "several rates",
        "scheduled text",
        "complex rate",
        "rate of a condition",
    ],
)
def test_what_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        make()
