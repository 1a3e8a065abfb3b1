"""XGBoost models of odd making against XGBoost: dart, classes that training did not see, slices, updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from irkit.errors import UnsupportedError
from irkit.frontends.xgboost import import_xgboost

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
NUMBERS = 2 * X[:, 0] + X[:, 1]
BITS = (X[:, 0] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
SMALL: dict[str, Any] = {"n_estimators": 12, "max_depth": 3, "n_jobs": 1}
DART: dict[str, Any] = {**SMALL, "booster": "dart", "rate_drop": 0.5, "one_drop": 1}


def boosted(y: Any, rounds: int = 6, model: Any = None, **parameters: Any) -> Any:
    settings = {"max_depth": 3, "nthread": 1, **parameters}
    return xgb.train(settings, xgb.DMatrix(X, y), rounds, xgb_model=model)


def with_parameter(model: Any, **parameters: Any) -> Any:
    model.set_param(parameters)
    return model


# Sums, bit for bit. Estimators and Boosters of dart add up in different ways.
SUMS: dict[str, Callable[[], Any]] = {
    "dart": lambda: xgb.XGBRegressor(**DART).fit(X, NUMBERS),
    "dart, normalised by forest": lambda: xgb.XGBRegressor(**DART, normalize_type="forest").fit(
        X, NUMBERS
    ),
    "dart of two targets": lambda: xgb.XGBRegressor(**DART).fit(
        X, np.stack([NUMBERS, 1 - NUMBERS], axis=1)
    ),
    "dart that drops nothing": lambda: xgb.XGBRegressor(**SMALL, booster="dart").fit(X, NUMBERS),
    "dart booster": lambda: xgb.XGBRegressor(**DART).fit(X, NUMBERS).get_booster(),
    "slice": lambda: boosted(NUMBERS)[2:5],
    "slice of dart": lambda: boosted(NUMBERS, booster="dart", rate_drop=0.5)[2:5],
    "continued": lambda: boosted(-NUMBERS, 2, boosted(NUMBERS)),
    "continued elsewhere": lambda: boosted(-NUMBERS, 2, boosted(NUMBERS), base_score=0.25),
    "another base score": lambda: with_parameter(boosted(NUMBERS), base_score=3.5),
    "trained on margins": lambda: xgb.train(
        {"max_depth": 2}, xgb.DMatrix(X, NUMBERS, base_margin=np.arange(120.0)), 3
    ),
    "one target in a column": lambda: xgb.XGBRegressor(**SMALL).fit(X, NUMBERS[:, None]),
    "quantiles": lambda: xgb.XGBRegressor(
        **SMALL, objective="reg:quantileerror", quantile_alpha=[0.1, 0.9]
    ).fit(X, NUMBERS),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(execute: Any, name: str) -> None:
    model = SUMS[name]()
    imported = import_xgboost(model)
    want = model.predict(xgb.DMatrix(X) if isinstance(model, xgb.Booster) else X)
    found = execute(imported, [X])["prediction"]
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(found, want)


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "softprob of three that saw two": lambda: xgb.XGBClassifier(
        **SMALL, objective="multi:softprob", num_class=3
    ).fit(X, BITS),
    "softmax of three that saw two": lambda: xgb.XGBClassifier(
        **SMALL, objective="multi:softmax", num_class=3
    ).fit(X, BITS),
    "dart of three": lambda: xgb.XGBClassifier(**DART).fit(X, THREE),
    "three without trees": lambda: xgb.XGBClassifier(n_estimators=0).fit(X, THREE),
    "one label in a column": lambda: xgb.XGBClassifier(**SMALL).fit(X, BITS[:, None]),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(execute: Any, name: str) -> None:
    model = CLASSIFIERS[name]()
    imported = import_xgboost(model)
    found, want = execute(imported, [X]), model.predict_proba(X)
    assert found["probabilities"].shape == want.shape
    np.testing.assert_allclose(found["probabilities"], want, rtol=0, atol=1e-6)
    label = found["label"]
    if imported.info.classes is not None:
        label = np.array(imported.info.classes)[label]
    np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.parametrize("classes", [1, 3])
def test_softprob_of_one_class(classes: int) -> None:
    model = xgb.XGBClassifier(**SMALL, objective="multi:softprob", num_class=classes)
    model.fit(X, np.zeros(120, int))
    with pytest.raises(UnsupportedError, match="a classifier of 1 class"):
        import_xgboost(model)
