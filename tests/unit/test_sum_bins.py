"""Sums between limits, turn by turn, as NumPy has them: limits in any order, overlapping, NaN."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit

RNG = np.random.default_rng(11)


def from_low(x, values, low, high):
    sums, counts = np.empty(low.size, values.dtype), np.empty(low.size, np.int64)
    for i in irkit.range(low.size):
        inside = (x >= low[i]) & (x < high[i])
        sums[i], counts[i] = values[inside].sum(), inside.sum()
    return sums, counts


def to_high(x, values, low, high):
    sums, counts = np.empty(low.size, values.dtype), np.empty(low.size, np.int64)
    for i in irkit.range(low.size):
        inside = (high[i] >= x) & (low[i] < x)
        sums[i], counts[i] = np.where(inside, values, 0).sum(), np.count_nonzero(inside)
    return sums, counts


def means(radius, values, bins):
    largest, found = radius.max(), np.zeros(bins)
    for i in irkit.range(bins):
        inside = np.logical_and(largest * i / bins <= radius, radius < largest * (i + 1) / bins)
        found[i] = values[inside].mean()
    return found


@pytest.mark.parametrize("function", [from_low, to_high])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_limits_of_any_order(function, dtype):
    whole = dtype is np.int16
    x = (RNG.random((150, 200)) * 100).round(0 if whole else 2).astype(dtype)
    values = RNG.random((150, 200)).astype(np.float32 if whole else dtype)
    low = RNG.choice(x.reshape(-1), 300)
    high = (low + RNG.integers(-3, 30, 300)).astype(dtype)
    if not whole:
        x[3, :7], x[5, 1], x[6, 1] = np.nan, np.inf, -np.inf
        low[17], high[40], low[50], high[60] = np.nan, np.nan, -np.inf, np.inf
    f = irkit.jit(target="cpu")(function)
    sums, counts = f(x, values, low, high)
    assert "graph.scatter_add" in f.ir("graph")
    wanted, exact = function(x, values, low, high)
    np.testing.assert_array_equal(counts, exact)
    np.testing.assert_allclose(sums, wanted, 1e-12 if values.dtype == np.float64 else 1e-4)


def test_what_is_not_between_limits_leaves_them_alone():
    x, values = RNG.random(20000), RNG.random(20000)
    values[7], values[8] = np.inf, np.nan
    low = RNG.random(300)
    f = irkit.jit(target="cpu")(from_low)
    sums, _ = f(x, values, low, low + 0.1)
    wanted, _ = from_low(x, values, low, low + 0.1)
    assert np.isfinite(wanted).any()
    assert np.isnan(wanted).any()
    np.testing.assert_allclose(sums, wanted, 1e-12)


def test_means_of_rings():
    f = irkit.jit(target="cpu")(means)
    radius, values = RNG.random(40000), RNG.random(40000)
    np.testing.assert_allclose(f(radius, values, 500), means(radius, values, 500), 1e-12)
    assert "graph.scatter_add" in f.ir("graph")
    np.testing.assert_allclose(f(radius, values, 5), means(radius, values, 5), 1e-12)
    assert "graph.scatter_add" not in f.ir("graph")
