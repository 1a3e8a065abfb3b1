"""NaN goes where a split says, which training found."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import pytest
import xgboost as xgb
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data, with_gaps

MODELS: dict[str, Any] = {
    "extra": lambda: ExtraTreesClassifier(9, random_state=0),
    "forest": lambda: RandomForestClassifier(9, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=9),
    "lightgbm": lambda: lgb.LGBMClassifier(n_estimators=9, verbose=-1, n_jobs=1),
    "regressor": lambda: RandomForestRegressor(9, random_state=0),
    "xgboost": lambda: xgb.XGBClassifier(n_estimators=9, base_score=0.5, n_jobs=1),
}


@pytest.mark.parametrize("name", MODELS)
def test_gaps(name: str) -> None:
    x, y = data("breast_cancer")
    gaps = with_gaps(x)
    model = MODELS[name]().fit(gaps, y)
    compare(interpreted(model), model, gaps, rtol=1e-6, atol=1e-7)
    compare(interpreted(model), model, gaps[::-1].copy(), rtol=1e-6, atol=1e-7)
