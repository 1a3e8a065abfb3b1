"""XGBoost writes the start of its sums as a list in a string, "[1.5E2]"."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import json

import numpy as np
import xgboost as xgb

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_regressor() -> None:
    x, y = data("diabetes")
    model = xgb.XGBRegressor(n_estimators=9, max_depth=3, n_jobs=1).fit(x, y)
    saved = json.loads(model.get_booster().save_raw("json"))
    assert saved["learner"]["learner_model_param"]["base_score"].startswith("[")
    compare(interpreted(model), model, x, exact=["predict"])


def test_several_targets() -> None:
    x, y = data("diabetes")
    model = xgb.XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1).fit(x, np.stack([y, -2 * y], 1))
    compare(interpreted(model), model, x, exact=["predict"])
