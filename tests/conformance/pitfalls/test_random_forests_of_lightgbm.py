"""LightGBM's random forests are means, and each tree has its own part of them."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import lightgbm as lgb

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_random_forest() -> None:
    given = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "n_estimators": 9}
    x, y = data("diabetes")
    model = lgb.LGBMRegressor(**given, verbose=-1, n_jobs=1).fit(x, y)
    compare(interpreted(model), model, x, exact=["predict"])
    x, y = data("wine")
    model = lgb.LGBMClassifier(**given, verbose=-1, n_jobs=1).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-14, atol=1e-16)
