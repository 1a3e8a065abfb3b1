"""Ensembles of any estimators, of several classes."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_bag() -> None:
    x, y = data("wine")
    for inner in (None, GaussianNB()):
        model = BaggingClassifier(inner, 5, max_features=0.6, random_state=0).fit(x, y)
        compare(interpreted(model), model, x, rtol=1e-9, atol=1e-9)


def test_stack_of_three_classes() -> None:
    x, y = data("wine")
    parts = [("f", RandomForestClassifier(5, random_state=0)), ("b", GaussianNB())]
    model = StackingClassifier(parts, LogisticRegression(max_iter=500), cv=2).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-9, atol=1e-9)
