"""LightGBM takes NaN for 0 where training met none."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import lightgbm as lgb

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data, with_gaps


def test_gaps_only_in_what_is_asked() -> None:
    x, y = data("breast_cancer")
    model = lgb.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(x - x.mean(axis=0), y)
    assert "missing_type" not in model.booster_.model_to_string()
    compare(interpreted(model), model, with_gaps(x - x.mean(axis=0)), exact=["predict"])
