"""Sums of many trees are in float64 and in order."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from tests.conformance.interpreted import compare, interpreted


def test_two_hundred_trees() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(1500, 12))
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int) + (x[:, 3] > 1)
    model = RandomForestClassifier(200, max_depth=8, random_state=0, n_jobs=1).fit(x, y)
    more = random.normal(size=(2000, 12)).astype(np.float32)
    compare(interpreted(model), model, more, exact=["predict", "predict_proba"])
