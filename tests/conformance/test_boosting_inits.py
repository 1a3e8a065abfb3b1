"""Gradient boosting that starts from another estimator's answers."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from irkit.errors import InvalidInputError, UnsupportedError
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

LABELS = np.array(["a", "bb", "ü"])


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
@pytest.mark.parametrize(
    "init",
    [
        LinearRegression(),
        DecisionTreeRegressor(max_depth=2),
        make_pipeline(StandardScaler(), SVR()),
        DummyRegressor(strategy="median"),
        GradientBoostingRegressor(init=Ridge(), n_estimators=2),
    ],
    ids=lambda init: type(init).__name__,
)
def test_regressors(loss, init):
    x, y = data("diabetes")
    model = GradientBoostingRegressor(loss=loss, init=init, n_estimators=4, random_state=0)
    program = interpreted(model.fit(x, y))
    # What `init` is given is float32, in which it computes.
    compare(program, model, x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dataset", ["iris", "breast_cancer"])
@pytest.mark.parametrize(
    "init",
    [
        RandomForestClassifier(3, random_state=0),
        DecisionTreeClassifier(max_depth=2),
        DummyClassifier(strategy="prior"),
    ],
    ids=lambda init: type(init).__name__,
)
def test_classifiers(init, dataset):
    x, y = data(dataset)
    for loss in ("log_loss", "exponential")[: 1 + (dataset == "breast_cancer")]:
        model = GradientBoostingClassifier(loss=loss, init=init, n_estimators=4, random_state=0)
        model.fit(x, LABELS[y])
        compare(interpreted(model), model, x, rtol=1e-9, atol=1e-9)


def test_within_others_and_compiled(compiled):
    x, y = data("diabetes")
    model = BaggingRegressor(GradientBoostingRegressor(init=Ridge(), n_estimators=3), 2).fit(x, y)
    compare(compiled(model, mode="serial", dtype="float64"), model, x, rtol=1e-6, atol=1e-6)


def test_what_it_takes_is_what_boosting_takes():
    """Trees would take NaN."""
    x, y = data("diabetes")
    model = GradientBoostingRegressor(init=DecisionTreeRegressor(max_depth=2), n_estimators=2)
    program = interpreted(model.fit(x, y))
    gap = np.where(np.arange(len(x))[:, None] == 3, np.nan, x)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(gap)
    with pytest.raises(InvalidInputError, match="has NaN"):
        program.predict(gap)


@pytest.mark.filterwarnings("ignore")
def test_probabilities_in_float32_are_refused():
    x, y = data("iris")
    model = GradientBoostingClassifier(init=LogisticRegression(max_iter=50), n_estimators=2)
    with pytest.raises(UnsupportedError, match=r"init=LogisticRegression.*float32"):
        interpreted(model.fit(x, y))
