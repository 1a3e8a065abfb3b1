"""Learning rates as functions of how many steps there were: each of these makes one, for an optimiser.

They take the number of steps so far, an int64 of no dimensions, and are computed in float64, in the program.
Formulas are those of `torch.optim.lr_scheduler`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.training.given import check_count, check_finite

Schedule = Callable[[Any], Any]


def _given(name: str, steps: int | None = None, **numbers: float) -> None:
    """Raises UnsupportedError for a number of steps below 1, and for what is no number."""
    if steps is not None:
        check_count(name, steps, "steps")
    for what, value in numbers.items():
        check_finite(f"{name}: {what}", value)


def exponential(rate: float, factor: float) -> Schedule:
    """`rate`, times `factor` for each step."""
    _given("exponential", rate=rate, factor=factor)
    return lambda done: rate * np.power(factor, done.astype(np.float64))


def staircase(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """`rate`, times `factor` each time that `every` steps are done."""
    _given("staircase", every, rate=rate, factor=factor)
    return lambda done: rate * np.power(factor, (done // every).astype(np.float64))


def linear(rate: float, end: float, steps: int) -> Schedule:
    """From `rate` to `end` in so many steps, and then that."""
    _given("linear", steps, rate=rate, end=end)

    def at(done: Any) -> Any:
        share = np.minimum(done, steps).astype(np.float64) / steps
        return rate + (end - rate) * share

    return at


def cosine(rate: float, steps: int, end: float = 0.0) -> Schedule:
    """From `rate` to `end` in so many steps along half a cosine, and then that."""
    _given("cosine", steps, rate=rate, end=end)

    def at(done: Any) -> Any:
        share = np.minimum(done, steps).astype(np.float64) / steps
        return end + (rate - end) * (1 + np.cos(np.pi * share)) / 2

    return at


def warmed_up(schedule: float | Schedule, steps: int) -> Schedule:
    """Step number n, from 1, of the first `steps` at n / `steps` of the rate of the first step; behind them
    `schedule` from its beginning."""
    _given("warmed_up", steps)
    if not callable(schedule):
        _given("warmed_up", rate=schedule)

    def at(done: Any) -> Any:
        rate = schedule(np.maximum(done - steps, 0)) if callable(schedule) else schedule
        return rate * np.minimum((done + 1).astype(np.float64) / steps, 1)

    return at
