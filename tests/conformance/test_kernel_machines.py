"""Support vector machines against scikit-learn: every kernel, two classes and more, ties by votes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from irkit.errors import UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

KERNELS = ("linear", "poly", "rbf", "sigmoid")
LABELS = np.array(["a", "long name", "ü"])


@cache
def scaled(name: str) -> tuple[Any, Any]:
    """120 rows of all classes, and their labels."""
    x, y = data(name)
    order = np.random.default_rng(0).permutation(len(x))[:120]
    made: Any = StandardScaler().fit_transform(x)
    return made[order], y[order]


def check(model: Any, x: Any) -> None:
    program = interpreted(model)
    # As decisions do, far rows and one that is a support vector.
    given = np.concatenate([x, 30 * x[:5], model.support_vectors_[:2]])
    compare(program, model, given, rtol=1e-9, atol=1e-9)
    compare(program, model, given.astype(np.float32), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_classifiers(kernel: str) -> None:
    x, y = scaled("wine")
    check(SVC(kernel=kernel, coef0=0.5).fit(x, LABELS[y]), x)
    check(SVC(kernel=kernel, decision_function_shape="ovo", gamma=0.1).fit(x, y), x)
    x, y = scaled("breast_cancer")
    check(NuSVC(kernel=kernel, nu=0.2).fit(x, y), x)


def test_many_classes_and_ties() -> None:
    x, y = data("digits")
    # Of three votes each, the first class wins; with break_ties, the surest.
    x, y = x[:200] + 0.25, y[:200]
    for ties in (False, True):
        model = SVC(gamma=0.001, break_ties=ties, C=0.02).fit(x, y)
        check(model, x[:60])
    votes = SVC(gamma=0.001, decision_function_shape="ovo", C=0.02).fit(x, y)
    check(votes, x[:60])


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressors_and_outliers(kernel: str) -> None:
    x, y = scaled("diabetes")
    check(SVR(kernel=kernel, degree=2).fit(x, y), x)
    check(NuSVR(kernel=kernel).fit(x.astype(np.float32), y), x)
    check(OneClassSVM(kernel=kernel, nu=0.2).fit(x), x)


def test_points_far_from_zero() -> None:
    x, y = scaled("wine")
    check(SVC().fit(x + 1e5, y), x + 1e5)


def test_given_kernels_and_those_that_are_constant() -> None:
    x, y = scaled("wine")
    given = x @ x.T
    for model in (SVC(kernel="precomputed").fit(given, y), SVR(kernel="precomputed").fit(given, y)):
        compare(interpreted(model), model, given, rtol=1e-9, atol=1e-9)
    check(SVC(kernel="poly", degree=0).fit(x, y), x)


def test_refused_by_name() -> None:
    x, y = scaled("iris")
    for model, reason in (
        (SVC(kernel=np.dot), "parameter kernel=a function"),
        (SVC(break_ties=True, decision_function_shape="ovo").fit(x, y), "break_ties=True"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model, "float64")
        assert reason in caught.value.missing[0]
    with pytest.raises(UnsupportedError, match="method 'predict_proba'"):
        interpreted(SVC().fit(x, y)).predict_proba(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dataset", ["wine", "breast_cancer"])
def test_probabilities(dataset: str) -> None:
    x, y = scaled(dataset)
    model = SVC(probability=True, random_state=0).fit(x, y)
    check(model, np.concatenate([x, 0.3 * x]))
    assert "predict_log_proba" in interpreted(model)._methods


@pytest.mark.filterwarnings("ignore")
def test_probabilities_of_many_classes_are_left_out() -> None:
    x, y = data("digits")[0][:110], np.arange(110) % 11
    model = SVC(probability=True, random_state=0).fit(x, y)
    assert "predict_proba" not in interpreted(model)._methods


def test_compiled(compiled: Any) -> None:
    x, y = scaled("wine")
    model = SVC().fit(x, LABELS[y])
    compare(compiled(model, mode="serial", dtype="float64"), model, x, rtol=1e-9, atol=1e-9)
