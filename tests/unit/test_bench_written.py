"""The programs that are written anew: they compute what their definitions say, and irkit what they do."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import written, written_stencils
from benchmarks.npbench_programs import NAMES
from benchmarks.written_programs import (
    PROGRAMS,
    Written,
    azimint_hist,
    azimint_naive,
    conv2d_bias,
    correlation,
    covariance,
    mandelbrot1,
    mandelbrot2,
)

RNG = np.random.default_rng(0)


def test_all_that_are_named_are_there() -> None:
    assert set(PROGRAMS) == set(NAMES)
    assert all(set(known.presets) == {"S", "M"} for known in PROGRAMS.values())


def test_correlation_and_covariance_are_numpys() -> None:
    data = RNG.random((30, 7))
    np.testing.assert_allclose(correlation(10 * data), np.corrcoef(data.T), atol=1e-12)
    np.testing.assert_allclose(covariance(data.copy()), np.cov(data.T), atol=1e-12)


def test_both_ways_to_integrate_and_to_escape_agree() -> None:
    data, radius = RNG.random(5000), np.append(RNG.random(4999), 0)
    naive = azimint_naive(data[radius < radius.max()], radius[radius < radius.max()], 9)
    hist = azimint_hist(data[radius < radius.max()], radius[radius < radius.max()], 9)
    np.testing.assert_allclose(naive[1:-1], hist[1:-1], atol=0.02)
    turns = (
        mandelbrot1(-1.75, 0.25, -1, 1, 12, 11, 30)[1],
        mandelbrot2(-1.75, 0.25, -1, 1, 12, 11, 30)[1],
    )
    inside = np.where(turns[1] < 30, turns[1], 0)
    np.testing.assert_array_equal(turns[0].T, np.maximum(inside - 1, 0))


def test_columns_of_the_advection_solve_their_tridiagonal_systems() -> None:
    arguments = PROGRAMS["vadv"].arguments(RNG, 3, 2, 6)
    stage_tendency, stage, wind, place, tendency, rate = arguments
    known = stage_tendency.copy()
    written_stencils.vadv(*arguments)
    found = (stage_tendency / rate + place)[0, 0]
    flow = 0.25 * (wind[1:] + wind[:-1])[0, 0]
    below, above = -0.5 * flow * (np.arange(6) > 0), 0.5 * np.append(flow[1:], 0)
    matrix = np.diag(rate - below - above) + np.diag(below[1:], -1) + np.diag(above[:-1], 1)
    u = stage[0, 0]
    right = rate * place[0, 0] + tendency[0, 0] + known[0, 0]
    right[1:] -= below[1:] * (u[:-1] - u[1:])
    right[:-1] -= above[:-1] * (u[1:] - u[:-1])
    np.testing.assert_allclose(matrix @ found, right, rtol=1e-9)


def test_windows_are_summed_by_every_filter() -> None:
    images, weights = RNG.random((2, 6, 6, 3)), RNG.random((3, 3, 3, 4))
    want = images[1, 2:5, 1:4].ravel() @ weights.reshape(27, 4) + np.arange(4)
    np.testing.assert_allclose(conv2d_bias(images, weights, np.arange(4.0))[1, 2, 1], want)


def test_what_is_wrong_or_refused_has_no_time() -> None:
    one, other = np.ones(3), np.array([1, np.nan, 1])
    assert written.difference([one], [other]) == np.inf
    assert written.difference([one], [one.astype("f4")]) == np.inf
    assert written.difference([one], [2 * one]) == 0.5
    asks = Written(lambda x: x if float(x[0]) else -x, lambda rng, n: (np.ones(n),), {"S": (3,)})  # pyright: ignore
    assert "refused" in written.written_program(asks, "S", 1, 0)["irkit"]


def test_irkit_computes_them() -> None:
    known = PROGRAMS["hdiff"]
    small = Written(known.function, known.arguments, {"S": (4, 5, 6)})
    found = written.written_program(small, "S", 1, 0)
    assert found["max_error"] < 1e-13
    assert found["irkit, times NumPy"] > 0


def test_a_first_call_is_timed_without_what_looks_at_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    def slow_difference(got: object, want: object) -> float:
        now[0] += 100
        return 0.0

    def called(x: np.ndarray) -> np.ndarray:
        now[0] += 1
        return x

    monkeypatch.setattr(written.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(written, "difference", slow_difference)
    monkeypatch.setattr(written.irkit, "jit", lambda target: lambda function: function)
    small = Written(called, lambda rng, n: (rng.random(n),), {"S": (8,)})
    assert written.written_program(small, "S", 1, 0)["compile_s"] == 1
