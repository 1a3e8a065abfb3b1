"""Histogram boosting, isolation forests and trees of several outputs against scikit-learn."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from irkit.errors import InvalidInputError
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data, with_gaps

DTYPES = ("float32", "float64")
SMALL: dict[str, Any] = {"n_estimators": 5, "random_state": 0}


def with_infinity(x: Any) -> Any:
    y = with_gaps(x)
    y[::3, 1], y[1::4, 2] = np.inf, -np.inf
    return y


def check(model: Any, *inputs: Any, exact: tuple[str, ...] = ("predict",)) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)}
    for x in inputs:
        for dtype in DTYPES:
            compare(program, model, x.astype(dtype), exact=exact, rtol=1e-12, atol=1e-12)


# Histogram boosting


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("dataset", ["breast_cancer", "wine"])
def test_histogram_classifier(dataset: str, gaps: bool) -> None:
    x, y = data(dataset)
    trained = with_gaps(x) if gaps else x
    model = HistGradientBoostingClassifier(max_iter=4).fit(trained, y)
    check(model, x, with_gaps(x), with_infinity(x), exact=("predict", "decision_function"))


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "poisson", "gamma", "quantile"]
)
def test_histogram_regressor(loss: str) -> None:
    x, y = data("diabetes")
    parameters = {"quantile": 0.3} if loss == "quantile" else {}
    model = HistGradientBoostingRegressor(loss=loss, max_iter=8, **parameters).fit(with_gaps(x), y)
    check(model, x, with_infinity(x), exact=() if loss in ("poisson", "gamma") else ("predict",))


def categorical() -> tuple[Any, Any]:
    x, y = data("diabetes")
    rng = np.random.default_rng(0)
    x = x.copy()
    x[:, 1], x[:, 4] = rng.integers(0, 60, len(x)), 5 + 3 * rng.integers(0, 4, len(x))
    return x, y + 100 * (x[:, 1] % 3) - 50 * (x[:, 4] == 8)


@pytest.mark.parametrize("gaps", [False, True])
def test_histogram_categories(gaps: bool) -> None:
    x, y = categorical()
    trained = with_gaps(x) if gaps else x
    model = HistGradientBoostingRegressor(max_iter=6, categorical_features=[4, 1]).fit(trained, y)
    assert any(p.nodes["is_categorical"].any() for (p,) in model._predictors)
    odd = x.copy()
    odd[::3, 1], odd[1::4, 4] = 61.5, 6
    check(model, x, odd, with_gaps(odd))
    odd[2, 1] = np.inf
    program = interpreted(model)
    with pytest.raises(ValueError, match="contains infinity"):
        model.predict(odd)
    with pytest.raises(InvalidInputError, match=r"row 2: infinity reaches OrdinalEncoder"):
        program.predict(odd)


def test_histogram_of_one_leaf_and_early_stopping() -> None:
    x, y = data("diabetes")
    check(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=400).fit(x, y), x)
    check(HistGradientBoostingRegressor(max_iter=50, early_stopping=True).fit(x, y), x)


def test_compiled_histogram(compiled: Any) -> None:
    x, y = categorical()
    labels = np.array(["few", "some", "many"])[np.digitize(y, [120, 250])]
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[1, 4]).fit(x, labels)
    program = compiled(model, mode="serial", dtype="float64")
    compare(program, model, with_gaps(x), exact=("predict", "decision_function"))


# Isolation forest


@pytest.mark.parametrize(
    "parameters",
    [{}, {"contamination": 0.1}, {"max_features": 0.5, "max_samples": 50}, {"bootstrap": True}],
    ids=str,
)
def test_isolation_forest(parameters: dict[str, Any]) -> None:
    x = data("diabetes")[0]
    model = IsolationForest(n_estimators=20, random_state=0, **parameters).fit(with_gaps(x))
    check(model, x, with_gaps(x), with_infinity(x))
    check(IsolationForest(n_estimators=3, random_state=0, max_samples=4).fit(x[:8]), x)


def test_isolation_forest_on_the_boundary() -> None:
    """An offset that is a row's own score: the row is no outlier."""
    x = data("iris")[0]
    model = IsolationForest(n_estimators=10, random_state=0, contamination=0.1).fit(x)
    scores = np.unique(model.score_samples(x))
    for score in scores[: len(scores) : 7]:
        model.offset_ = score
        assert (model.decision_function(x) == 0).any()
        check(model, x)
        model.offset_ = np.nextafter(score, 0)
        assert (model.score_samples(x)[model.predict(x) == -1] == score).any()
        check(model, x)


def test_compiled_isolation_forest(compiled: Any) -> None:
    x = data("iris")[0]
    model = IsolationForest(n_estimators=10, random_state=0, contamination=0.1).fit(x)
    compare(compiled(model, mode="serial"), model, x, exact=("predict",), rtol=1e-12, atol=1e-12)


# Several outputs

REGRESSORS: dict[str, Callable[[], Any]] = {
    "decision_tree": lambda: DecisionTreeRegressor(max_depth=6, random_state=0),
    "extra_tree": lambda: ExtraTreeRegressor(max_depth=6, random_state=0),
    "random_forest": lambda: RandomForestRegressor(**SMALL),
    "extra_trees": lambda: ExtraTreesRegressor(**SMALL),
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "decision_tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "extra_tree": lambda: ExtraTreeClassifier(max_depth=4, random_state=0),
    "random_forest": lambda: RandomForestClassifier(4, random_state=0),
    "extra_trees": lambda: ExtraTreesClassifier(4, random_state=0),
}
EXACT = ("predict", "predict_proba", "predict_log_proba")


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor_of_several_outputs(name: str) -> None:
    x, y = data("diabetes")
    model = REGRESSORS[name]().fit(with_gaps(x), np.stack([y, -2 * y, y % 7], axis=1))
    check(model, x, with_gaps(x))


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("labels", ["numbers", "strings", "one"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_of_several_outputs(name: str, labels: str) -> None:
    x, y = data("iris")
    several = np.stack([y, y > 0, np.arange(len(y)) % 4 + 10], axis=1).astype(np.int32)
    if labels == "strings":
        several = several.astype(str)
    model = CLASSIFIERS[name]().fit(with_gaps(x), y if labels == "one" else several)
    check(model, x, with_gaps(x), exact=EXACT)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_compiled_several_outputs(compiled: Any) -> None:
    x, y = data("iris")
    several = np.stack([y, np.arange(len(y)) % 4 + 10], axis=1)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0))
    program = compiled(model.fit(x, several), mode="serial", dtype="float64")
    compare(program, model, x, exact=EXACT)


def test_compiled_forest_of_a_thousand_classes(compiled: Any) -> None:
    """Sums of a block of rows take much of the stack, which nothing fills before."""
    random = np.random.default_rng(0)
    x = random.normal(size=(2000, 6))
    model = RandomForestClassifier(3, max_depth=7, random_state=0).fit(x, np.arange(2000) % 1000)
    before = time.process_time() + os.times().children_user
    program = compiled(model, mode="serial")
    compare(program, model, x[:150], exact=EXACT)
    # Twenty times what it takes; with a store for each sum LLVM took minutes.
    assert time.process_time() + os.times().children_user - before < 60
