"""Linear models against scikit-learn: every estimator, every method it has."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model as lm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from irkit.frontends.sklearn.linear import PREDICTORS
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

DTYPES = ("float32", "float64")
SEVERAL = tuple(n for n in PREDICTORS if n.startswith("MultiTask"))
CLASSIFIERS = (
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
)
REGRESSORS = tuple(n for n in PREDICTORS if n not in CLASSIFIERS)


def estimator(name: str, **parameters: Any) -> Any:
    others = {
        "LinearSVC": LinearSVC,
        "LinearSVR": LinearSVR,
        "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis,
    }
    cls = others.get(name) or getattr(lm, name)
    if name == "LogisticRegressionCV":
        parameters = {"Cs": 2, "cv": 2, "use_legacy_attributes": False, "scoring": "accuracy"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**parameters)


def fit(model: Any, x: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, y)


@cache
def regression(dtype: str) -> tuple[Any, Any]:
    x, y = data("diabetes")
    return x.astype(dtype), y


@cache
def classification(dataset: str, dtype: str) -> tuple[Any, Any]:
    x, y = data(dataset)
    scaled: Any = StandardScaler().fit_transform(x)
    return scaled[:150].astype(dtype), y[:150]


def solver_of(model: Any) -> str:
    return model.solver if isinstance(model, LinearDiscriminantAnalysis) else ""


def check(model: Any, x: Any) -> None:
    program = interpreted(model)
    has = {m for m in METHODS if hasattr(model, m)}
    # Discriminants by least squares have a transform that raises an error.
    assert set(program._methods) == has - ({"transform"} if solver_of(model) == "lsqr" else set())
    for dtype in DTYPES:
        given = x.astype(dtype)
        narrow = dtype == "float32"
        # Products of float32 are rounded in another order.
        compare(program, model, given, rtol=1e-4 if narrow else 1e-6, atol=1e-4 if narrow else 1e-6)


@pytest.mark.parametrize("trained", DTYPES)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor(name: str, trained: str) -> None:
    x, y = regression(trained)
    y = np.stack([y, -y], axis=1) if name in SEVERAL else y
    check(fit(estimator(name), x, y), x)


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "Lasso"])
def test_several_targets(name: str) -> None:
    x, y = regression("float64")
    for targets in (np.stack([y, -2 * y], axis=1), y[:, None]):
        check(fit(estimator(name), x, targets), x)


def test_no_intercept_and_other_links() -> None:
    x, y = regression("float64")
    check(fit(lm.Ridge(fit_intercept=False), x.astype(np.float32), y), x)
    check(fit(lm.TweedieRegressor(power=0, link="log"), x, y), x)
    check(fit(lm.TweedieRegressor(power=0), x, y), x)


@pytest.mark.parametrize("dataset", ["iris", "breast_cancer"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(name: str, dataset: str) -> None:
    x, y = classification(dataset, "float64")
    check(fit(estimator(name), x, y), x)


@pytest.mark.parametrize("dataset", ["iris", "breast_cancer"])
@pytest.mark.parametrize("loss", ["log_loss", "modified_huber", "huber", "perceptron"])
def test_losses_of_descent(loss: str, dataset: str) -> None:
    x, y = classification(dataset, "float64")
    # Far rows make every class impossible: probabilities are then uniform.
    check(fit(lm.SGDClassifier(loss=loss, random_state=0), x, y), np.concatenate([x, 50 * x]))


@pytest.mark.parametrize(
    "solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga", "liblinear"]
)
def test_solvers(solver: str) -> None:
    for dataset in ("breast_cancer",) if solver == "liblinear" else ("iris", "breast_cancer"):
        x, y = classification(dataset, "float64")
        check(fit(lm.LogisticRegression(solver=solver, max_iter=30), x, y), x)


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_discriminants(solver: str) -> None:
    x, y = classification("iris", "float64")
    model = fit(LinearDiscriminantAnalysis(solver=solver), x, y)
    # Probabilities that are 0 have the logarithm of the smallest normal number.
    check(model, np.concatenate([x, 100 * x]))


LABELS: dict[str, Any] = {
    "strings": np.array(["a", "long name", "ü"]),
    "objects": np.array(["a", "long name", "ü"], object),
    "shifted": np.array([5, 6, 9], np.int32),
    "negative": np.array([-3, 0, 7], np.int64),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_their_type(kind: str) -> None:
    x, y = classification("iris", "float64")
    check(fit(lm.LogisticRegression(), x, LABELS[kind][y]), x)


def test_bool_labels() -> None:
    x, y = classification("breast_cancer", "float64")
    check(fit(lm.LogisticRegression(), x, y.astype(bool)), x)


def test_compiled(compiled: Any) -> None:
    x, y = classification("iris", "float64")
    model = fit(lm.SGDClassifier(loss="modified_huber", random_state=0), x, LABELS["strings"][y])
    program = compiled(model, mode="serial", dtype="float64")
    compare(program, model, np.concatenate([x, 50 * x]))


@pytest.mark.parametrize("kind", ["RidgeClassifier", "RidgeClassifierCV"])
def test_several_labels_a_row(kind: str) -> None:
    x, y = data("wine")
    marks = np.stack([y == 0, y > 0, y == 2], axis=1).astype(int)
    model = getattr(lm, kind)().fit(x, marks)
    program = interpreted(model)
    compare(program, model, x, rtol=1e-9, atol=1e-9)
    found = program.predict(x)
    assert (found.dtype, found.shape) == (np.dtype(np.int64), marks.shape)
