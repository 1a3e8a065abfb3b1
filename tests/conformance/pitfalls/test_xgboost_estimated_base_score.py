"""XGBoost estimates where its sums start, since 2.0, of classifiers too."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import pytest
import xgboost as xgb

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
def test_classifiers(name: str) -> None:
    x, y = data(name)
    model = xgb.XGBClassifier(n_estimators=9, max_depth=3, n_jobs=1).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-6, atol=1e-7)
