"""Splits of LightGBM ("0||3||6") and XGBoost by sets of categories."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

from tests.conformance.interpreted import compare, interpreted


def rows() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    x = np.column_stack([random.integers(0, 12, 400), random.normal(size=400)]).astype(float)
    return x, np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])[x[:, 0].astype(int)] + x[:, 1]


ODD = [0.0, -0.0, 0.9, 11.9, 12.0, 99.0, np.nan, 31.0, 32.0, 1e6]


def test_lightgbm() -> None:
    x, y = rows()
    model = lgb.LGBMRegressor(n_estimators=9, cat_smooth=1, min_data_per_group=1, verbose=-1)
    model.fit(x, y, categorical_feature=[0])
    assert "||" in str(model.booster_.dump_model())
    odd = np.column_stack([[*ODD, -1.0, -0.5, np.inf, -np.inf], np.zeros(14)])
    for given in (x, odd):
        compare(interpreted(model), model, given, exact=["predict"])


def test_xgboost() -> None:
    x, y = rows()
    types = ["c", "float"]
    model = xgb.XGBRegressor(
        n_estimators=9, max_depth=4, feature_types=types, enable_categorical=True, n_jobs=1
    ).fit(x, y)
    compare(interpreted(model), model, x, exact=["predict"])
    odd = np.column_stack([ODD, np.zeros(len(ODD))])
    compare(interpreted(model), model, odd, exact=["predict"])
