"""Estimators and frames in compiled functions, and further functions of NumPy: tasks of the host, said so."""

# pyright: basic
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import irkit
from tests.unit import host_functions
from tests.unit.jitted import check

compiled: Any = functools.partial(irkit.jit, target="cpu", cache=False)
X = np.random.default_rng(0).random((40, 4))
MODEL = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0, 4.0])
FOREST = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, X[:, 0] > 0.5)


class Doubled(BaseEstimator):
    def fit(self, x):
        self.fitted_ = True
        return self

    def transform(self, x):
        return np.asarray(x) * 2


def test_methods_of_estimators_that_are_not_compiled():
    """test_jit_estimators.py has those that are."""
    model = Doubled().fit(X)
    told = check(lambda x: model.transform(x * 2) + 1, X, tolerance=1e-12, jit=compiled).explain()
    assert "host task: Doubled.transform at" in told
    assert "not compiled: Doubled is none of scikit-learn's own estimators" in told
    assert "1280 bytes in, 1280 bytes out" in told


def test_an_estimator_that_is_fitted_again():
    model = LinearRegression().fit(X, X[:, 0])
    f = compiled(lambda x: model.predict(x) * 2)
    assert np.allclose(f(X), model.predict(X) * 2)
    model.fit(X, X[:, 1] + 3)
    assert np.allclose(f(X), model.predict(X) * 2)


def test_programs_that_irkit_compiled():
    program = irkit.compile(FOREST, target="cpu", cache=False)
    f = compiled(lambda x: program.predict_proba(x * 2) + 1)
    assert np.allclose(f(X), FOREST.predict_proba(X * 2) + 1)
    assert "a program that irkit.compile made" in f.explain()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.linalg.solve(x.T @ x, x.T @ x[:, 0]) * 2,
        lambda x: np.linalg.eigvalsh(x.T @ x) + 1,
        lambda x: np.linalg.svd(x, full_matrices=False)[1] * 2,
        lambda x: np.percentile(x, 30, axis=0) * 2,
        lambda x: np.interp(x[:, 0] * 2, np.arange(3.0), np.arange(3.0) ** 2) + 1,
        lambda x: np.histogram(x, 5, (0, 1))[0] * 2,
        lambda x: np.searchsorted(np.array([0.2, 0.4]), x) + 1,
        lambda x: np.linalg.norm(x, 2) * 2,
        lambda x: np.partition(x, 2, axis=0)[2] + 1,
    ],
)
def test_further_functions_of_numpy(function):
    f = check(function, X, tolerance=1e-9, jit=compiled)
    assert "host task: numpy." in f.explain()
    task = f.report()["host_tasks"][0]
    assert task["bytes_out"] < 2 * X.nbytes


def test_a_function_of_numpy_that_writes():
    def f(x):
        y = x * 2
        np.place(y, y > 1, [0.0])
        return y + 1

    check(f, X, tolerance=1e-15, jit=compiled)


def test_frames():
    pandas = pytest.importorskip("pandas")
    f = check(lambda x: host_functions.rolled(x * 2, 3) + 1, X[:, 0], tolerance=1e-12, jit=compiled)
    assert "host_functions.rolled at" in f.explain()
    f = check(lambda x: pandas.cut(x * 2, [0.0, 0.5, 3.0], labels=False) + 1, X[:, 0], jit=compiled)
    assert "host task: pandas.cut" in f.explain()
    check(lambda x: pandas.Series(x).rolling(3).mean().to_numpy(), X[:, 0], jit=compiled)
