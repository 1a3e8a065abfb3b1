"""Thresholds are float64 and data float32: rounded to the nearest, they fall on the wrong side of data."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_forest_of_diabetes() -> None:
    x, y = data("diabetes")
    model = RandomForestRegressor(30, random_state=0).fit(x, y)
    program = interpreted(model)
    compare(program, model, x, exact=["predict"])
    compare(program, model, x.astype(np.float32), exact=["predict"])
    limits = np.concatenate([e.tree_.threshold for e in model.estimators_])
    collide = np.isin(limits.astype(np.float32), x.astype(np.float32))
    # The data set is one on which it matters.
    assert (limits[collide] != limits[collide].astype(np.float32)).sum() > 100
