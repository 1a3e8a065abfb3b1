"""Forests of several outputs, and stacks of trees of two kinds."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
)

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_regressor() -> None:
    x, y = data("diabetes")
    model = RandomForestRegressor(9, random_state=0).fit(x, np.stack([y, -y, y**2], axis=1))
    compare(interpreted(model), model, x, exact=["predict"])


def test_classifier() -> None:
    x, y = data("iris")
    both = np.stack(
        [np.array(["a", "b", "ü"])[y], np.array(["x", "y"])[(y > 1).astype(int)]], axis=1
    )
    model = RandomForestClassifier(9, random_state=0).fit(x, both)
    compare(interpreted(model), model, x, exact=["predict_proba"])


def test_stack_of_two_kinds() -> None:
    x, y = data("diabetes")
    forest = RandomForestRegressor(5, random_state=0)
    boosted = GradientBoostingRegressor(n_estimators=9, random_state=0)
    model = StackingRegressor([("a", forest), ("b", boosted)], cv=2).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-12, atol=1e-12)
