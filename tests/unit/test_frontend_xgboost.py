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


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: regressor(missing=float("inf")), "parameter missing=inf"),
        (lambda: classifier(y=np.zeros((200, 2), int)), "a classifier of 1 class and 2 columns"),
        (lambda: classifier(objective="reg:squarederror"), "a classifier with objective"),
    ],
)
def test_refused(make: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_xgboost(make(), "float32")
    assert len(caught.value.missing) == 1
    assert caught.value.missing[0].startswith(reason)


def test_everything_missing_is_listed() -> None:
    model = classifier(objective="reg:squarederror", missing=None)
    with pytest.raises(UnsupportedError) as caught:
        import_xgboost(model, "float32")
    assert len(caught.value.missing) == 2


@pytest.mark.parametrize("kind", [xgb.DMatrix, xgb.DataIter])
def test_other_wrappers(kind: Any) -> None:
    with pytest.raises(UnsupportedError, match=f"XGBoost model {kind.__name__}; supported"):
        import_xgboost(type(kind.__name__, (), {})(), "float32")


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


def test_a_best_iteration_that_is_none() -> None:
    model = regressor()
    model.get_booster().set_attr(best_iteration="7")
    with pytest.raises(InvalidModelError, match="best_iteration is 7; the model has 3 iterations"):
        import_xgboost(model, "float32")


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
    assert (info.allow_nan, info.allow_infinity) == (True, True)
    info = import_model(regressor().get_booster(), "float32").info
    assert (info.kind, info.outputs) == ("regressor", ("prediction",))
    assert not info.allow_infinity
