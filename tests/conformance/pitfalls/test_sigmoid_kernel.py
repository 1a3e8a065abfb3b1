"""The kernel that scikit-learn calls sigmoid is a hyperbolic tangent."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from sklearn.svm import SVC, NuSVC

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_machines() -> None:
    x, y = data("wine")
    for model in (SVC(kernel="sigmoid"), NuSVC(kernel="sigmoid", nu=0.1, coef0=0.3)):
        scaled = (x - x.mean(axis=0)) / x.std(axis=0)
        compare(interpreted(model.fit(scaled, y)), model, scaled, rtol=1e-9, atol=1e-9)
