"""Trees of dart have weights, which are no part of XGBoost's text dump."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import lightgbm as lgb
import xgboost as xgb

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_xgboost() -> None:
    x, y = data("diabetes")
    model = xgb.XGBRegressor(booster="dart", rate_drop=0.5, n_estimators=15, n_jobs=1, seed=0).fit(
        x, y
    )
    compare(interpreted(model), model, x, rtol=1e-6, atol=0.0)


def test_lightgbm() -> None:
    x, y = data("diabetes")
    model = lgb.LGBMRegressor(boosting_type="dart", n_estimators=15, verbose=-1, n_jobs=1).fit(x, y)
    compare(interpreted(model), model, x, exact=["predict"])
