"""Parameters that change how many columns there are."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data, with_gaps


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize(
    "parameters",
    [
        {"drop": "first"},
        {"drop": "if_binary"},
        {"min_frequency": 12},
        {"max_categories": 3},
        {"max_categories": 3, "handle_unknown": "infrequent_if_exist"},
        {"handle_unknown": "ignore", "drop": "first"},
    ],
    ids=str,
)
def test_one_hot(parameters: Any) -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([random.integers(0, 9, 90) ** 2 // 9, random.integers(0, 2, 90)]).astype(
        float
    )
    model = OneHotEncoder(sparse_output=False, **parameters).fit(x)
    compare(interpreted(model), model, x, exact=["transform"])
    if "handle_unknown" in parameters:
        compare(interpreted(model), model, x + 50, exact=["transform"])


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_indicators(strategy: str) -> None:
    x = with_gaps(data("wine")[0])
    model = SimpleImputer(strategy=strategy, add_indicator=True).fit(x)
    compare(interpreted(model), model, x, exact=["transform"])
