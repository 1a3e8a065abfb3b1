"""Rows of a CSR matrix, for linear models, naive Bayes and trees."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import pytest
import xgboost as xgb
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

MODELS: dict[str, Any] = {
    "bayes": MultinomialNB,
    "forest": lambda: RandomForestClassifier(9, random_state=0),
    "lightgbm": lambda: lgb.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
    "logistic": lambda: LogisticRegression(max_iter=50),
    "xgboost": lambda: xgb.XGBClassifier(n_estimators=3, n_jobs=1),
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", MODELS)
def test_rows(name: str) -> None:
    x, y = data("digits")
    rows = sparse.csr_matrix(x)
    model = MODELS[name]().fit(rows, y)
    compare(interpreted(model), model, rows, rtol=1e-6, atol=1e-7, prepare=lambda part: part)
