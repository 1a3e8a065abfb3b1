"""What LightGBM does to its sums hangs on the objective."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import lightgbm as lgb
import pytest

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


@pytest.mark.parametrize("objective", ["poisson", "gamma", "tweedie", "cross_entropy"])
def test_objectives(objective: str) -> None:
    x, y = data("diabetes")
    y = y / y.max() if objective == "cross_entropy" else y
    model = lgb.LGBMRegressor(n_estimators=9, objective=objective, verbose=-1, n_jobs=1).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-14, atol=0.0)


def test_booster_gives_probabilities() -> None:
    x, y = data("breast_cancer")
    given = {"objective": "binary", "verbose": -1, "sigmoid": 2.0}
    booster = lgb.train(given, lgb.Dataset(x, y), 9)
    compare(interpreted(booster), booster, x, rtol=1e-14, atol=0.0)


def test_leaves_of_linear_trees() -> None:
    x, y = data("diabetes")
    model = lgb.LGBMRegressor(n_estimators=3, linear_tree=True, verbose=-1).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-14, atol=0.0)
