"""HistGradientBoosting compares in float64, whatever the rows' type is."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_rows_of_float32() -> None:
    x, y = data("breast_cancer")
    model = HistGradientBoostingClassifier(max_iter=20).fit(x, y)
    compare(interpreted(model), model, x.astype(np.float32), rtol=1e-14, atol=1e-15)
    x, y = data("diabetes")
    model = HistGradientBoostingRegressor(max_iter=20).fit(x, y)
    compare(interpreted(model), model, x.astype(np.float32), exact=["predict"])


def test_rows_that_float32_does_not_tell_apart() -> None:
    x = 1.0 + np.arange(400)[:, None] * 1e-10
    model = HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=2).fit(x, np.arange(400) % 7)
    assert len(np.unique(model.predict(x))) > 9
    assert len(np.unique(x.astype(np.float32))) == 1
    compare(interpreted(model), model, x, exact=["predict"])
