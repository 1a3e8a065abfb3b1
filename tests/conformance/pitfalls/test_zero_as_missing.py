"""LightGBM may take 0, and what is next to it, for missing."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import lightgbm as lgb
import numpy as np

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data, with_gaps


def test_zeros() -> None:
    x, y = data("digits")
    model = lgb.LGBMRegressor(n_estimators=9, zero_as_missing=True, verbose=-1, n_jobs=1).fit(x, y)
    program = interpreted(model)
    compare(program, model, with_gaps(x), exact=["predict"])
    for tiny in (1e-35, -1e-35, 1.1e-35, 1e-36, -0.0, 5e-324):
        compare(program, model, np.where(x == 0, tiny, x)[:50], exact=["predict"])
