"""The XGBoost front end: what it refuses, and what it says about a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.xgboost import import_xgboost

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 0] + 0.1 * RNG.normal(size=200)
LABELS = (Y > 0).astype(int)
SMALL: dict[str, Any] = {"n_estimators": 3, "max_depth": 3, "n_jobs": 1}


def regressor(y: Any = Y, **parameters: Any) -> Any:
    return xgb.XGBRegressor(**SMALL | parameters).fit(X, y)


def classifier(y: Any = LABELS, **parameters: Any) -> Any:
    return xgb.XGBClassifier(**SMALL | parameters).fit(X, y)


def categorical() -> Any:
    x = X.copy()
    x[:, 1] = RNG.integers(0, 8, 200)
    y = np.where(x[:, 1] % 2, 5.0, -5.0)
    kinds = ["q", "c", "q", "q"]
    return xgb.XGBRegressor(**SMALL, enable_categorical=True, feature_types=kinds).fit(x, y)


TWO = np.stack([Y, -Y], axis=1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (categorical, "categorical splits"),
        (lambda: regressor(booster="dart"), "booster 'dart'"),
        (lambda: regressor(booster="gblinear", max_depth=None), "booster 'gblinear'"),
        (lambda: regressor(missing=0.0), "parameter missing=0.0"),
        (lambda: regressor(n_estimators=0), "a model without trees"),
        (lambda: regressor(TWO, multi_strategy="multi_output_tree"), "multi_strategy="),
        (lambda: regressor(np.abs(Y), objective="survival:cox"), "objective 'survival:cox'"),
        (lambda: classifier(objective="binary:logitraw"), "objective 'binary:logitraw'"),
        (lambda: classifier(objective="binary:hinge"), "objective 'binary:hinge'"),
        (lambda: classifier(objective="reg:squarederror"), "a classifier with objective"),
        (lambda: classifier((TWO > 0).astype(int)), "a classifier of several labels per row"),
        (
            lambda: classifier(objective="multi:softprob", num_class=2),
            "objective 'multi:softprob' with 2 classes",
        ),
    ],
)
def test_refused(make: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_xgboost(make(), "float32")
    assert len(caught.value.missing) == 1
    assert caught.value.missing[0].startswith(reason)


def test_everything_missing_is_listed() -> None:
    model = regressor(np.abs(Y), booster="dart", objective="survival:cox", missing=-1.0)
    with pytest.raises(UnsupportedError) as caught:
        import_xgboost(model, "float32")
    assert len(caught.value.missing) == 3


@pytest.mark.parametrize("kind", [xgb.XGBRFRegressor, xgb.XGBRanker])
def test_other_wrappers(kind: Any) -> None:
    with pytest.raises(UnsupportedError, match=f"XGBoost model {kind.__name__}; supported"):
        import_xgboost(kind(), "float32")


@pytest.mark.parametrize("kind", [xgb.XGBClassifier, xgb.XGBRegressor])
def test_not_fitted(kind: Any) -> None:
    with pytest.raises(InvalidModelError, match=f"{kind.__name__} is not fitted"):
        import_xgboost(kind(), "float32")


class Damaged:
    """Stands for a Booster whose JSON is not what XGBoost writes."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def save_raw(self, kind: str) -> bytes:
        return self._raw


@pytest.mark.parametrize("raw", [b'{"learner": {', b'{"learner": {"objective": {}}}'])
def test_damaged_json(raw: bytes) -> None:
    damaged = Damaged(raw)
    damaged.__class__ = type("Booster", (Damaged,), {})
    with pytest.raises(InvalidModelError, match="JSON is not readable"):
        import_xgboost(damaged, "float32")


def test_information() -> None:
    info = import_model(classifier(), "float64").info
    assert info.methods == {"predict": "label", "predict_proba": "probabilities"}
    assert (info.kind, info.classes, info.casts) == ("classifier", (0, 1), ("float64",))
    assert (info.allow_nan, info.allow_infinity) == (True, False)
    info = import_model(regressor().get_booster(), "float32").info
    assert (info.kind, info.outputs) == ("regressor", ("prediction",))
