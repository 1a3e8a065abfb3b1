"""Rates from measured rTasks: those by which the estimates are nearest to the measurements, as ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rtask_times import Sample
from irkit.dialects.task.rates import RATES, Lane

Array = NDArray[np.float64]


_OVERLAPPING: Sequence[Lane] = ("compute", "memory", "latency")


class Fit:
    """Levenberg and Marquardt's method on the logarithms of rates, so that they stay positive.

    Minimised are the logarithms of estimate over measurement, in a norm that a few outliers do not rule
    (weights 1 / max(|r|, `cap`)), and, weakly, how far a rate moves from where it starts: one that no
    measurement bears on stays.
    """

    def __init__(self, samples: Sequence[Sample], start: Mapping[str, float]) -> None:
        self.kinds = [k for k in RATES if any(s.work.get(k) for s in samples)]
        self.start = {k: start[k] for k in self.kinds}
        rows = [[s.work.get(k, 0.0) for k in self.kinds] for s in samples]
        self.units: Array = np.array(rows, dtype=np.float64)
        self.measured: Array = np.log(np.array([s.measured_ns for s in samples]))
        self._lanes = {lane: self._lane(lane) for lane in (*_OVERLAPPING, "serial")}

    def _lane(self, lane: Lane) -> Any:
        return np.array([RATES[k].lane == lane for k in self.kinds])

    def estimate(self, logs: Array) -> tuple[Array, Array]:
        """Logarithms of the estimates, and how they follow the rates' logarithms."""
        parts = self.units * np.exp(logs)
        sums = {lane: parts[:, chosen].sum(axis=1) for lane, chosen in self._lanes.items()}
        slowest = np.argmax([sums[lane] for lane in _OVERLAPPING], axis=0)
        counted = np.array([self._lanes[lane] for lane in _OVERLAPPING])[slowest]
        parts = parts * (counted | self._lanes["serial"])
        total = np.maximum(parts.sum(axis=1), 1e-9)
        return np.log(total), parts / total[:, None]

    def run(self, steps: int = 400, hold: float = 0.03, cap: float = 0.15) -> dict[str, float]:
        """The fitted rates."""
        first: Array = np.log(np.array([self.start[k] for k in self.kinds]))
        logs, damping = first.copy(), 1.0
        weights = np.ones(len(self.measured))
        for _ in range(steps):
            estimate, slopes = self.estimate(logs)
            left = estimate - self.measured
            weights = 1 / np.maximum(np.abs(left), cap)
            pulled = slopes.T * weights
            matrix = pulled @ slopes + (hold + damping) * np.eye(len(logs))
            gradient = pulled @ left + hold * (logs - first)
            moved = logs - np.clip(np.linalg.solve(matrix, gradient), -0.5, 0.5)
            better = self._loss(moved, first, hold, cap) < self._loss(logs, first, hold, cap)
            logs = moved if better else logs
            damping = max(damping / 2, 1e-4) if better else damping * 4
            if damping > 1e8:
                break
        return {k: float(r) for k, r in zip(self.kinds, np.exp(logs), strict=True)}

    def _loss(self, logs: Array, first: Array, hold: float, cap: float) -> float:
        left = np.abs(self.estimate(logs)[0] - self.measured)
        robust = np.where(left < cap, left**2 / (2 * cap) + cap / 2, left)
        return float(robust.sum() + hold / 2 * ((logs - first) ** 2).sum())
