"""Trees of one leaf whose value is 0 are trees like others."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from sklearn.ensemble import HistGradientBoostingClassifier

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_wine() -> None:
    x, y = data("wine")
    model = HistGradientBoostingClassifier(max_iter=100).fit(x, y)
    alone = [t for stage in model._predictors for t in stage if len(t.nodes) == 1]
    assert alone
    compare(interpreted(model), model, x, rtol=1e-13, atol=1e-15)
