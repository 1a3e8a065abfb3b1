"""What the libraries take beside floats in rows: objects, and no rows at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from lightgbm import LGBMRegressor
from sklearn import ensemble, linear_model, pipeline, preprocessing, svm

from irkit.errors import InvalidInputError
from tests.conformance.interpreted import interpreted

RNG = np.random.default_rng(3)
X = np.round(RNG.normal(size=(90, 4)), 2)
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
SCALED: Any = vars(pipeline)["make_pipeline"]
MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: ensemble.RandomForestClassifier(3, random_state=0),
    "histograms in a vote": lambda: ensemble.VotingClassifier(
        [("a", ensemble.ExtraTreesClassifier(2)), ("b", linear_model.LogisticRegression())]
    ),
    "lightgbm": lambda: LGBMRegressor(n_estimators=2, verbose=-1),
    "svm": svm.SVC,
    "scaled": lambda: SCALED(preprocessing.StandardScaler(), linear_model.RidgeClassifier()),
    "xgboost": lambda: xgb.XGBClassifier(n_estimators=2),
}
OBJECTS = [
    X[:5].astype(object),
    np.array([[1, 2.5, True, np.float32(0.1)], [2**60, -1, False, 3]], object),
    np.array([["1.5", "2", 0, 1e-3]], object),
]


@pytest.mark.parametrize("rows", OBJECTS, ids=["floats", "mixed", "texts"])
@pytest.mark.parametrize("name", MODELS)
def test_objects_are_numbers(name: str, rows: Any) -> None:
    model = MODELS[name]().fit(X, Y)
    np.testing.assert_allclose(interpreted(model).predict(rows), model.predict(rows), rtol=1e-12)


def test_objects_that_are_none() -> None:
    program = interpreted(MODELS["forest"]().fit(X, Y))
    with pytest.raises(InvalidInputError, match="an object that is no number: could not convert"):
        program.predict(np.array([[1.0, 2.0, "a", 0.0]], object))


def test_objects_that_a_step_keeps() -> None:
    model = SCALED(preprocessing.FunctionTransformer(np.abs), linear_model.Ridge()).fit(X, Y)
    with pytest.raises(
        InvalidInputError, match="has dtype object, in which the model would compute"
    ):
        interpreted(model).predict(X.astype(object))


@pytest.mark.parametrize("labels", [Y > 0, X[:, 0]], ids=["two", "numbers"])
def test_no_rows_of_xgboost(labels: Any) -> None:
    kind = xgb.XGBRegressor if labels.dtype.kind == "f" else xgb.XGBClassifier
    model = kind(n_estimators=2).fit(X, labels)
    program = interpreted(model)
    for method in program.methods:
        found, want = getattr(program, method)(X[:0]), getattr(model, method)(X[:0])
        assert found.dtype == want.dtype
        assert found.shape == want.shape


@pytest.mark.parametrize("objective", ["binary:hinge", "binary:logitraw"])
def test_xgboost_of_decisions_and_margins(objective: str) -> None:
    model = xgb.XGBClassifier(n_estimators=4, max_depth=2, objective=objective).fit(X, Y > 0)
    program = interpreted(model)
    for method in ("predict", "predict_proba"):
        found, want = getattr(program, method)(X), getattr(model, method)(X)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)
