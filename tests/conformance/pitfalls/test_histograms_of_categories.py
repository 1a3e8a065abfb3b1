"""HistGradientBoosting has sets of categories, and moves its columns."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from tests.conformance.interpreted import compare, interpreted


def test_numbers() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack(
        [random.normal(size=300), random.integers(0, 9, 300), random.normal(size=300)]
    )
    y = x[:, 0] + np.array([3, 1, 4, 1, 5, 9, 2, 6, 5])[x[:, 1].astype(int)]
    model = HistGradientBoostingRegressor(max_iter=9, categorical_features=[1]).fit(x, y)
    odd = np.repeat(x[:6], 2, axis=0)
    odd[:, 1] = [-1, 99, np.nan, 2.5, 0, -0.0, 8, 9, 10, 254, 255, 3]
    # What is no category is for scikit-learn unknown, or an error.
    for rows in (x, odd[[2, 4, 5, 6, 11]], odd):
        compare(interpreted(model), model, rows, exact=["predict"])


def test_strings_between_numbers() -> None:
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": random.normal(size=300),
            "kind": random.choice(list("xyzü"), 300),
            "b": random.random(300),
        }
    )
    y = frame["kind"].isin(["x", "ü"]) ^ (frame["a"] > 0)
    model = HistGradientBoostingClassifier(max_iter=9, categorical_features=["kind"]).fit(frame, y)
    compare(interpreted(model), model, frame, rtol=1e-13, atol=1e-15, prepare=lambda rows: rows)
