"""`np.histogram` in compiled functions: NumPy's bits, whoever counts."""

# pyright: basic
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.annotations import histograms, workers
from tests.unit.jitted import check

compiled: Any = functools.partial(irkit.jit, target="cpu", cache=False)
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(500, 300))


def exact(a, bins, limits, weights):
    got = histograms.histogram(a, bins, limits, weights)
    for g, w in zip(got, np.histogram(a, bins, limits, weights=weights), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("limits", [None, (-0.5, 1.25), (0, 2), (0.3, 0.3)])
@pytest.mark.parametrize("bins", [1, 7, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint32"])
def test_its_own_code_counts_as_numpy_does(dtype, bins, limits):
    a = (np.abs(VALUES) * 30 if dtype[0] in "iu" else VALUES).astype(dtype)
    known = histograms.histogram_annotation(a, bins, limits, None)
    assert known is histograms.HISTOGRAM
    exact(a, bins, limits, None)
    for kind in ("float64", "float32", "int16", "bool"):
        exact(a, bins, limits, (3 * RNG.normal(size=a.shape)).astype(kind))


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("bins", [3, 4000])
def test_parts_are_put_together_as_numpy_has_them(cores, bins, monkeypatch):
    """Counts in any order, sums of weights block by block, in rounds of few blocks too."""
    monkeypatch.setattr(workers, "usable_cores", lambda: cores)
    monkeypatch.setattr(histograms, "usable_cores", lambda: cores)
    monkeypatch.setattr(histograms, "SUMS", 2 * bins)
    a = RNG.normal(size=5 * histograms.BLOCK + 77)
    a[-1] = 9.0
    for limits in (None, (-1.0, 0.5)):
        exact(a, bins, limits, None)
        exact(a, bins, limits, RNG.normal(size=a.shape))
        exact(a.astype(np.float32), bins, limits, RNG.normal(size=a.shape).astype(np.float32))
    a[-2] = np.nan
    with pytest.raises(ValueError, match=r"autodetected range of \[nan, nan\] is not finite"):
        histograms.histogram(a, bins, None, None)


def test_values_on_edges():
    a = np.repeat(np.linspace(0, 1, 31), 5000)
    for bins in (3, 10, 30, 31):
        exact(a, bins, None, None)
        exact(np.nextafter(a, 2), bins, (0, 1), None)
        exact(np.nextafter(a, -1).astype(np.float32), bins, (0, 1), RNG.random(a.size))
    exact(np.full(70000, 2.5), 4, None, None)
    a[5] = np.nan
    exact(a, 4, (0, 1), None)
    with pytest.raises(ValueError, match=r"autodetected range of \[nan, nan\] is not finite"):
        histograms.histogram(a, 4, None, None)


NARROW = (1, 1 + 1e-12)


@pytest.mark.parametrize("limits", [(0, 1), (0.1, 0.7), (-1e3, 1e9), (-1e-30, 1e-30), NARROW])
@pytest.mark.parametrize("bins", [1, 3, 49, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_beside_edges(dtype, bins, limits):
    """Where an estimate may be a bin off, that of a value just below the last edge among them."""
    if limits == NARROW and dtype == "float32":
        pytest.skip("float32 has no such bins")
    edges = np.linspace(*limits, bins + 1).astype(dtype)
    near = [np.nextafter(edges, np.array(end, dtype)) for end in (-np.inf, np.inf)]
    middles = (edges[1:] + edges[:-1]) / 2
    a = np.resize(np.concatenate([edges, *near, middles, [np.nan, np.inf]]), 2 * histograms.BLOCK)
    for given in (a, np.sort(a), np.full(70000, near[0][-1])):
        exact(given.astype(dtype), bins, limits, None)
        exact(given.astype(dtype), bins, limits, RNG.random(given.size))


def azimuthal(data, radius, points):
    counted = np.histogram(radius, points)[0]
    return np.histogram(radius, points, weights=data)[0] / counted


def test_in_a_compiled_function():
    data, radius = RNG.random((2, 80000))
    f = check(azimuthal, data, radius, 100, jit=compiled)
    told = f.explain()
    assert told.count("host task: numpy.histogram at") == 2
    assert "counted by irkit's own code" in told
    assert check(azimuthal, data[:50], radius[:50], 3, jit=compiled)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.histogram(x * 2, 9, density=True)[0] * 2,
        lambda x: np.histogram(x * 2, np.array([0.0, 1.0, 3.0]))[0] * 2,
        lambda x: np.histogram(x * 2, 9, (np.float64(0), 1))[0] * 2,
        lambda x: np.histogram((x > 0) & (x < 1), 2, weights=x)[0] * 2,
    ],
)
@pytest.mark.filterwarnings("ignore:Converting input from bool")
def test_what_numpy_counts(function):
    told = check(function, VALUES, tolerance=1e-12, jit=compiled).explain()
    assert "irkit has no form of numpy.histogram with these arguments" in told
